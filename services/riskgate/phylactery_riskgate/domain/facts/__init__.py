"""Facts of a call that policies decide on."""
