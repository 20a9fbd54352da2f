# The laboratory as a container image, for machines without Debian or Ubuntu. Live runs need a privileged container:
#   docker build --tag mstcp-lab .
#   docker run --rm --privileged --volume "$PWD/results:/runs/results" mstcp-lab run butterfly --protocol mstcp,ospf
#   docker run --rm mstcp-lab run butterfly --engine sim --protocol mstcp,ospf --duration 60
FROM debian:bookworm-slim AS build
WORKDIR /source
COPY scripts scripts
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev make git ca-certificates python3-venv \
    && scripts/find-cargo && rm -rf /var/lib/apt/lists/*
COPY . .
RUN python3 -m venv /opt/build && /opt/build/bin/pip install --quiet 'setuptools>=77' 'setuptools-rust>=1.11,<2' wheel \
    && export CARGO="$(scripts/find-cargo)" && PATH="$(dirname "$CARGO"):$PATH" \
    && /opt/build/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /wheels . ./crates/gomr-py ./lab

FROM debian:bookworm-slim
COPY scripts/install-packages /tmp/install-packages
RUN apt-get update && /tmp/install-packages --emulation && rm -rf /var/lib/apt/lists/* /tmp/install-packages
COPY --from=build /wheels /wheels
COPY requirements.lock /tmp/
# With hashes in its constraints pip would ask for hashes of our own wheels too.
RUN sed -E '/^ +--hash/d; s/ \\$//' /tmp/requirements.lock >/tmp/constraints.txt && python3 -m venv /opt/mstcp-lab \
    && /opt/mstcp-lab/bin/pip install --no-cache-dir --constraint /tmp/constraints.txt --find-links /wheels 'mstcp-lab[parquet]' \
    && rm -r /wheels /tmp/requirements.lock /tmp/constraints.txt
ENV PATH="/opt/mstcp-lab/bin:$PATH"
WORKDIR /runs
ENTRYPOINT ["mstcp-lab"]
CMD ["doctor"]
