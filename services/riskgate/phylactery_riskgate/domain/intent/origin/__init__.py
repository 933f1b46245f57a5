"""Where the values of a call come from: words of the user, results, computation."""
