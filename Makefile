# Graft's everyday commands; plain `make` lists them. CMake does the work, in build/release.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help deps build build-all wheel wheel-aarch64 test-aarch64 demo test bench compat docs docs-check site lint format install clean

PREFIX ?= /usr/local
GRAFT_CUDA ?= AUTO
GRAFT_CUDA_ARCHITECTURES ?=
export GRAFT_CUDA
settings = -DGRAFT_CUDA=$(GRAFT_CUDA) '-DGRAFT_CUDA_ARCHITECTURES=$(GRAFT_CUDA_ARCHITECTURES)'

python := .deps/venv/bin/python

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo; echo "  GRAFT_CUDA=OFF leaves out CUDA: no compiler installed, no kernels, no plugin library."
	@echo "  GRAFT_CUDA_ARCHITECTURES='80-real;90' chooses GPUs, 'all' is every one since sm_75; by default this"
	@echo "  machine's, or without one PTX for sm_90 and later, which compiles fastest; for \`make wheel\` all."

deps: ## install what the rest needs: Debian packages, and wheels into .deps
	@tools/setup build engine test wheel

build: deps ## build/bin/graft, build/lib/libgraft_plugins.so, build/python
	@tools/build release $(settings) -- graft_product

build-all: deps
	@tools/build release $(settings)

# A wheel is for other machines, so its kernels are for every GPU unless the caller chooses.
wheel: GRAFT_CUDA_ARCHITECTURES := $(or $(GRAFT_CUDA_ARCHITECTURES),all)
wheel: build ## dist/graft_tensorrt-....whl, the Python package with the program and the plugin library for all GPUs
	@$(python) tools/wheel.py

wheel-aarch64: ## the same for 64-bit ARM (Jetson, Grace), cross-compiled in build/aarch64
	@tools/setup build wheel aarch64
	@tools/build aarch64 -DGRAFT_CUDA=$(GRAFT_CUDA) '-DGRAFT_CUDA_ARCHITECTURES=$(or $(GRAFT_CUDA_ARCHITECTURES),all)' -- graft_product
	@$(python) tools/wheel.py aarch64

test-aarch64: ## install that wheel in qemu, in a root of Debian 12 with Python alone, and run the examples
	@tools/setup build engine test aarch64
	@$(python) -m pytest -q -p no:cacheprovider tests/python/aarch64

demo: ## a trained digits network, from ONNX, TensorFlow and Caffe to TensorRT engines
	@tools/setup build engine
	@tools/build release $(settings) -- graft_program
	@examples/digits/demo

test: build-all ## every test that this machine can run
	@tools/test release

bench: build ## on a machine with a GPU, PyTorch and ncu: times every operator, writes docs/performance.md
	@mkdir -p build/bench
	@GRAFT_PYTHON="$${GRAFT_PYTHON:-$$(command -v python3)}" build/bin/graft bench --op all --json --report build/bench/report.html >build/bench/result.json
	@"$${GRAFT_PYTHON:-python3}" bench/profile_misses.py build/bench/result.json --library build/lib/libgraft_plugins.so --output build/bench/profile.json
	@$(python) bench/document.py build/bench/result.json --profile build/bench/profile.json --commit "$$(git rev-parse --short HEAD)"
	@$(python) tools/generate_docs.py
	@echo "wrote docs/performance.md; charts: build/bench/report.html"

compat: build-all ## try the plugin library with every TensorRT that the registries hold
	@tools/setup compat
	@$(python) tools/compat.py

docs: build ## write docs/ops from the operators' definitions
	@$(python) tools/generate_docs.py
	@$(python) tools/generate_stubs.py
	@$(python) tools/embed_examples.py
	@tools/build release $(settings) -- graft_write_schemas convert_tool
	@build/bin/graft_write_schemas docs/schema
	@$(python) tools/onnx_support.py --lowerings

docs-check: build
	@$(python) tools/generate_docs.py --check
	@$(python) tools/generate_stubs.py --check
	@$(python) tools/make_schema.py --check
	@$(python) tools/tensorrt_versions.py --check
	@tools/build release $(settings) -- graft_write_schemas convert_tool
	@build/bin/graft_write_schemas docs/schema --check
	@$(python) tools/onnx_support.py --check

site: ## build/site, the documentation as web pages, which need no server
	@tools/setup site
	@NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --quiet --strict
	@echo "wrote build/site/index.html"

lint: build-all ## clang-format, clang-tidy, shellcheck, ruff, mypy
	@tools/setup lint
	@tools/lint

format: ## rewrite the sources as clang-format and ruff want them
	@tools/setup lint
	@tools/lint --format

install: build ## install under PREFIX (/usr/local)
	@cmake --install build/release --strip --prefix "$(PREFIX)" | tail -n 1
	@echo "installed under $(PREFIX); find_package(graft) finds it there"

clean: ## remove build; what deps installed stays
	@rm -rf build
