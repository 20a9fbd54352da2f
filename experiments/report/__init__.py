"""Reports of a results document: a table on the terminal (`terminal`), an HTML page with plots (`page`)."""
