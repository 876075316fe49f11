# An image of Debian 12 with Graft, built by the two commands of README.md; everything comes from Debian and PyPI.
#   docker build -t graft .            runs `make demo`
#   docker run --rm graft              runs `make test`
#   docker run --rm graft graft help   runs the program; a GPU needs --gpus all
FROM debian:12 AS system
RUN apt-get update && apt-get install -y --no-install-recommends git make && rm -rf /var/lib/apt/lists/*

FROM system
# OFF leaves out the kernels and the plugin library, and needs no nvcc.
ARG GRAFT_CUDA=AUTO
ENV GRAFT_CUDA=$GRAFT_CUDA
WORKDIR /graft
COPY . .
RUN make demo
ENV PATH=/graft/build/bin:/graft/.deps/venv/bin:$PATH
CMD ["make", "test"]
