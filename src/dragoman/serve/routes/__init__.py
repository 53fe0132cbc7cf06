"""The routes of the service, one file an API."""
