"""The lab's page: current runs (`mstcp-lab run … --watch`) and finished results (`mstcp-lab browse`).

`event_log` keeps the events for pages, `watching` fills it from the runner's events, `documents` reads
results for it, `app` offers all that over HTTP, `views` describes the answers and `server` runs that in a
thread of its own. The page itself is built from `web/src/lab` into `experiments/page`.
"""
