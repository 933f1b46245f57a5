"""The channels' own servers on loopback, for tests and for the demo: they speak as much of each API as is used."""
