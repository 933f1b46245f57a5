"""`phylactery chat`: an interactive session."""
