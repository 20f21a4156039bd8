"""Windows, videos and the browser page."""
