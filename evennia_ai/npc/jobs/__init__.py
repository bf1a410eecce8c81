"""What minds do besides speaking, as jobs: in this process, or by workers on any machine."""
