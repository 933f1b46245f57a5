"""What `phylactery forms` does with the files of forms, without a service."""
