# A command each does everything, set-up included: `make demo`, `make demo-video` and `make test`.

TARGET := $(or $(CARGO_TARGET_DIR),target)
SILK := $(TARGET)/release/silk
OUT := bench/out

# Packages are installed by one at a time; cargo is parallel by itself.
.NOTPARALLEL:
.PHONY: help setup build build-video demo demo-video bench bench-video test

help:
	@echo "make demo    Apache over Linux, HAProxy and silk in turn, with tables and a page of plots"
	@echo "make demo-video   two windows beside a load, by deadline and in turn, with a page of pictures and plots"
	@echo "make test    every test that runs on one machine"
	@echo "make bench   the experiments in full, nearly three hours"
	@echo "make bench-video   the experiments with video in full, half an hour and more"
	@echo "make setup   install the Debian packages that the others need (they do it themselves)"
	@echo "make build   build the programs, optimised; installs only what that needs"
	@echo "make build-video   build silk-media too, which needs the libraries of FFmpeg and SDL2"

setup:
	@scripts/setup

build:
	@scripts/setup build
	cargo build --release -p silkd -p silk -p libsilk

build-video: build
	@scripts/setup build video
	cargo build --release -p silk-media-program

demo: setup build
	@mkdir -p $(OUT)
	$(SILK) bench web --quick --json $(OUT)/web.json --html $(OUT)/web.html

demo-video: setup build-video
	@mkdir -p $(OUT)
	$(TARGET)/release/silk-media demo --html $(OUT)/video-demo.html

bench: setup build
	@mkdir -p $(OUT)
	$(SILK) bench web --json $(OUT)/web-full.json --html $(OUT)/web-full.html
	$(SILK) bench tcp --json $(OUT)/tcp-full.json --html $(OUT)/tcp-full.html

bench-video: setup build-video
	@mkdir -p $(OUT)
	$(SILK) bench video --json $(OUT)/video-full.json --html $(OUT)/video-full.html

test: setup
	@scripts/test
