"""The viewer in a browser.

`play` lets robots act and serves the page; `door` decides who may use it. `session` holds the
robots and their policy. `scene_stream` draws them with the shapes of `meshes`, and `overlays` draws
arrows and points on them. `panel` has the controls of `controls`, `camera` and `policy_menu`, and
the plots of `curves` and `plots`.
"""
