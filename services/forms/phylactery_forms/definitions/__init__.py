"""Forms as data: their files, the published schema, and what a file is checked for before it is used."""
