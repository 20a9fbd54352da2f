"""Files of demands and traffic matrices, one module for each format; `registry` knows them all."""
