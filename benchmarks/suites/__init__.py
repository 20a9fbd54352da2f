"""Other projects' test suites over the library's transports."""
