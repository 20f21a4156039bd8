"""Policy files: the network, its metadata, and the export to other programs."""
