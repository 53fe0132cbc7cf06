"""The routes of the service have one file for each API."""
