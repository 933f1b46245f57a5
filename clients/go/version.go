package client

// Version is the version of this client, which is that of the whole repository.
const Version = "0.2.0"
