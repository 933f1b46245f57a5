"""What every Phylactery service shares."""
