"""The viewer in a browser.

`play` lets robots act and serves the page. `session` holds the robots and their policy,
`scene_stream` draws them, and `meshes` makes their shapes. `panel` has the controls, `plots` the
curves.
"""
