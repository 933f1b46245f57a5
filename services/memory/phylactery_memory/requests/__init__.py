"""Requests as the edge accepts them; the bounds are those the contract's comments state."""
