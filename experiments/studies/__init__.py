"""Studies as data: a paper's experiment, its tables and its sentences, and what the simulator says of them.

`schema` is the file's form (docs/studies.md), `cases` makes the simulator's descriptions of it, `measure`
runs them, `evaluate` holds the figures against the paper's, `document` is what comes of it. Adding a study is
adding a file to `data/`.
"""
