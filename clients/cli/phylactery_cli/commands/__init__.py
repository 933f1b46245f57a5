"""The commands of `phylactery`."""
