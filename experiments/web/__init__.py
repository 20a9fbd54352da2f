"""The lab's page: a run in hand (`mstcp-lab run … --watch`) and finished results (`mstcp-lab browse`).

`event_log` keeps what a page has to be told, `watching` makes it of the runner's events, `documents` reads
results for it, `app` offers all that over HTTP and `server` runs that in a thread of its own. The page itself
is built of `web/src/lab` into `experiments/page`.
"""
