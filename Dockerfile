# One server in an image; docker/README.md says how to run it and why it is built like this.

# Name it by its digest for an image that can be built again: python:3.12-slim@sha256:...
ARG BASE_IMAGE=python:3.12-slim

FROM $BASE_IMAGE AS base
# The processor that numba compiles for, the same at build and at run: code for another one
# would be compiled again at each start. `generic` runs on every processor of the architecture.
ARG NUMBA_CPU_NAME=generic
ARG NUMBA_CPU_FEATURES=""
ENV PATH=/opt/wolfstream/venv/bin:$PATH \
    NUMBA_CPU_NAME=$NUMBA_CPU_NAME \
    NUMBA_CPU_FEATURES=$NUMBA_CPU_FEATURES


# `make lock` writes the versions and hashes that the image is made of.
FROM base AS dependencies
COPY locks/server.txt locks/build.txt /requirements/
RUN python -m venv --without-pip /opt/wolfstream/venv \
    && pip --python /opt/wolfstream/venv install \
        --no-cache-dir --require-hashes -r /requirements/server.txt \
    && rm -rf /opt/wolfstream/venv/lib/python3*/site-packages/numba/tests \
        /opt/wolfstream/venv/lib/python3*/site-packages/numba/cuda/tests \
    && pip install --no-cache-dir --require-hashes -r /requirements/build.txt


# Everything of wolfstream itself goes to /installed, at the paths that it has in the image.
FROM dependencies AS builder
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY wolfstream wolfstream
COPY solver solver
COPY service service
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir dist . \
    && pip --python /opt/wolfstream/venv install \
        --no-cache-dir --no-deps --no-index --root /installed dist/*.whl \
    && cp -a /installed/. /
# -I: from the environment, not from the sources in the working directory; numba's cache knows
# a function by its file's path. The server's user reads it, and the directory is made for its owner.
RUN XDG_CACHE_HOME=/installed/opt/wolfstream/cache python -I -m wolfstream.service.compilation.compiler_process \
    && chmod -R a+rX /installed/opt/wolfstream/cache


FROM base
RUN groupadd --gid 10001 wolfstream \
    && useradd --uid 10001 --gid 10001 --no-log-init --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin wolfstream \
    && install -d -o 10001 -g 10001 -m 0750 /data
COPY --from=dependencies /opt/wolfstream /opt/wolfstream
COPY --from=builder /installed/opt/wolfstream /opt/wolfstream
COPY docker/entrypoint.sh docker/healthcheck.py /opt/wolfstream/

ENV WOLFSTREAM_HOST=0.0.0.0 \
    WOLFSTREAM_PORT=8000 \
    WOLFSTREAM_DATA=/data
USER 10001:10001
VOLUME ["/data"]
EXPOSE 8000
STOPSIGNAL SIGTERM
# Recovery replays the log since the last snapshot; until then the server is not ready.
HEALTHCHECK --interval=15s --timeout=5s --start-period=10m --retries=3 \
    CMD ["python", "-I", "/opt/wolfstream/healthcheck.py"]
ENTRYPOINT ["/bin/sh", "/opt/wolfstream/entrypoint.sh"]
CMD ["serve"]

ARG VERSION=0.1.0
ARG REVISION=""
LABEL org.opencontainers.image.title="wolfstream" \
      org.opencontainers.image.description="A server that learns while it serves: online classification and regression over REST and websocket" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
