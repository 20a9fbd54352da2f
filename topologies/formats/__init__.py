"""Files of networks, one module for each format; `registry` knows them all.

A module reads its format into a `RawNetwork` and knows nothing else; `assembly` makes the network of it:
names, directions, parallel edges, rates and delays that the file does not give.
"""
