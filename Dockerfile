# `rationalizer serve` with PyTorch's CPU build: docker build -t rationalizer .
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# "web,transformers" for models with a transformer as encoder
ARG EXTRAS=web
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# PyTorch first: the default index has the CUDA build, which is ten times as large.
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --constraint constraints.txt --index-url "${TORCH_INDEX}" torch \
    && /venv/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]"

FROM ${BASE}
RUN useradd --create-home --uid 10001 rationalizer
COPY --from=build /venv /venv
ENV PATH=/venv/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/home/rationalizer/kernels
USER rationalizer
WORKDIR /home/rationalizer
# Compiles the kernels into the image, so that a server starts in seconds.
RUN rationalizer explain sentiment "A warm film." \
    && rationalizer explain nli "A man sleeps." "A man is awake."
EXPOSE 8000
# Needs no token; 503 while the queue is full.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/ready', timeout=2)"]
ENTRYPOINT ["rationalizer"]
CMD ["serve", "--host", "0.0.0.0", "--access-log"]
