# What a developer types. Needs make, and Python with its headers. Go and a C
# compiler are used when they are on PATH, and installed from the package index
# (pinned, into .cache/) when they are not.

PYTHON ?= python3
PYTEST_FLAGS ?=

DEV := .cache/dev
DEMO := .cache/demo
BACKEND := PYTHONPATH=pybind/build $(DEV)/bin/python -m gormapy_build
GO := $(BACKEND) go
PIP := -m pip --quiet --disable-pip-version-check
GO_PACKAGES := ./gocore/... ./pybind/build/... ./docs/... $(if $(wildcard pybind/core/*.go),./pybind/core/...)
SOURCES := $(shell find gocore pybind python/gormapy go.mod go.sum pyproject.toml README.md -type f \
	-not -path '*/__pycache__/*' -not -path '*/_bin/*' -not -name '*.so' 2>/dev/null)

.PHONY: help build compare quick quick-lint test test-exhaustive check test-go test-python test-fabrics test-nodes test-hosts test-rdma test-rdma-hosts test-thirdparty conformance check-others large stress faults exhaustion neighbours interrupts threads soak leaks race test-arm64 interleave model simulate fuzz lint lint-go lint-c lint-python stubs demo notebooks test-notebooks lessons-check test-elsewhere test-browser docs checking-classes test-docs wheel wheels sdist check-wheels test-wheels test-sdist test-reproducible release clean

help:
	@echo 'make demo         install into an environment of its own and run a 4-rank program'
	@echo 'make quick        run what is fast: lint of what changed, Go tests, Python tests on two ranks'
	@echo 'make test         build, then run the Go and the Python tests, but for the exhaustive ones'
	@echo 'make check        run everything that a change has to pass'
	@echo 'make lint         check the Go, the C and the Python sources'
	@echo 'make stubs        write the stub of gormapy.MPI and its docstrings anew, after a change of calls, types or docs/docstrings'
	@echo 'make build        build into the tree, for use with .cache/dev/bin/python'
	@echo 'make compare      measure gormapy, MPICH and Open MPI in turn; COMPARE="--rows ring -n 2" chooses'
	@echo 'make conformance  run all of mpi4py'"'"'s own tests and demonstrations'
	@echo 'make test-fabrics run the tests of MPI over tcp and libfabric'
	@echo 'make test-nodes   run the tests of MPI with ranks that are divided into nodes, which share no memory'
	@echo 'make test-rdma    run the tests that need RDMA devices, in a guest that has some if need be'
	@echo 'make test-rdma-hosts run jobs over RDMA on two hosts, which are guests'
	@echo 'make check-others run examples, and mpi4py'"'"'s tests and demonstrations of windows, with mpiexec --check'
	@echo 'make test-thirdparty run libraries of others, fetched from the package index, and compare with MPICH'
	@echo 'make large        run one-sided operations on more than 2^31 elements'
	@echo 'make stress       run 100,000 random one-sided operations against a serial model'
	@echo 'make faults       try memory that faults in every call, and every fault in every state, and show how the jobs end'
	@echo 'make interrupts   interrupt every call written in Python at every bytecode boundary'
	@echo 'make threads      have threads change, free and wait for the same requests, with checks of memory'
	@echo 'make exhaustion   let descriptors and memory run out in every call'
	@echo 'make neighbours   have process ids come again, and 10,000 connections that say nothing'
	@echo 'make leaks        make everything a million times, and look what a process has more of'
	@echo 'make soak         work for MINUTES (60) while ranks are stopped, interrupted and killed'
	@echo 'make test-arm64   run Go tests for aarch64 under qemu-user'
	@echo 'make race         run the Go tests under the race detector'
	@echo 'make test-hosts   run jobs on several hosts, made of namespaces; needs root'
	@echo 'make interleave   run the shared-memory protocols through their interleavings'
	@echo 'make model        count what collectives of up to 256 ranks transfer, and measure what a transfer takes'
	@echo 'make simulate     run whole jobs in an order that seeds decide; SEEDS=1000 or FROM-TO chooses'
	@echo 'make fuzz         feed the decoders of what comes from a network with nonsense'
	@echo 'make notebooks    execute the lessons and write their notebooks; LESSONS="1 2" chooses'
	@echo 'make test-notebooks compare the notebooks with their sources, and execute them'
	@echo 'make lessons-check execute the lessons on ranks that are checked (mpiexec --check)'
	@echo 'make test-elsewhere run the programs of the lessons on MPICH and Open MPI'
	@echo 'make test-browser use the magics in JupyterLab as a person does; screenshots in .cache/screenshots'
	@echo 'make docs         make the documentation site, .cache/docs/html'
	@echo 'make checking-classes run the programs of docs/checking-classes.md, and write their reports into it'
	@echo 'make test-docs    run the code of the pages, and look at the site in a headless browser'
	@echo 'make wheel sdist  write dist/, with a wheel for this Python and machine'
	@echo 'make wheels       write dist/, with the wheels of a release: for every Python, x86_64 and aarch64'
	@echo 'make test-wheels  build them, and try them where they are to run: PLACES="here testing" chooses'
	@echo 'make test-sdist   build a wheel of the source distribution with every CPython 3.10+ that is found'
	@echo 'make release      check everything, and write dist/ with notes and digests'
	@echo 'make clean        remove everything that was made'

$(DEV)/made: pybind/build/gormapy_build/environment.py
	@PYTHONPATH=pybind/build $(PYTHON) -m gormapy_build venv $(DEV)
	@$(DEV)/bin/python $(PIP) install "tomli==2.5.0; python_version == '3.10'"
	@$(BACKEND) group test
	@touch $@

build: $(DEV)/made
	@$(BACKEND) in-place

# What a developer runs after each change: lint of what changed, and what is fast, on two ranks.
# Like make lint and make test, it ends with the first failure.
# Most tests wait more than they compute, so three workers keep two cores busy. Tests that measure run alone, see the mark.
WORKERS ?= 3
# A worker that crashes ends the run.
IN_PARALLEL := $(if $(filter-out 0 1,$(WORKERS)),-n $(WORKERS) --dist load --max-worker-restart 0)
TESTED := not exhaustive and not conformance and not large and not stress and not browser and not hosts and not thirdparty and not site
quick: build quick-lint
	$(GO) vet $(GO_PACKAGES)
	$(GO) test -short -timeout 10m $(GO_PACKAGES)
	@$(BACKEND) group test
	$(DEV)/bin/python -m pytest -q $(IN_PARALLEL) -m "$(TESTED) and not slow" --ranks 2 $(PYTEST_FLAGS) $(QUICK_TESTS)

QUICK_TESTS := tests/api tests/rma tests/slots tests/file
CHANGED = $(shell git diff --name-only --diff-filter=d HEAD -- '*$(1)'; git ls-files --others --exclude-standard -- '*$(1)')
quick-lint: $(DEV)/made
	@$(BACKEND) group lint
	$(if $(call CHANGED,.py),$(DEV)/bin/ruff check $(call CHANGED,.py))
	$(if $(call CHANGED,.py),$(DEV)/bin/ruff format --check $(call CHANGED,.py))
	@unformatted=$$($(if $(call CHANGED,.go),$(BACKEND) gofmt -l $(call CHANGED,.go),true)) && \
		if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi

# make check runs the exhaustive tests, too.
test: test-go
	@$(MAKE) --no-print-directory test-python MARKS='-m "$(TESTED)"'

# What make test leaves out, but for what has targets of its own.
test-exhaustive: build
	@$(BACKEND) group test
	$(DEV)/bin/python -m pytest $(IN_PARALLEL) -m "exhaustive and not conformance and not large and not stress and not browser and not hosts and not thirdparty and not site" $(PYTEST_FLAGS)

# Everything that a change has to pass, one after the other. .ci/run does a part of it from a bare machine, without a
# compiler, and with the newest Python, too.
check:
	@for step in lint test-go test-python test-notebooks test-docs test-elsewhere test-rdma test-fabrics interleave fuzz race; do \
		echo "make $$step" && $(MAKE) --no-print-directory $$step || exit 1; done

test-go: $(DEV)/made
	$(GO) vet $(GO_PACKAGES)
	$(GO) test -timeout 20m $(GO_PACKAGES)

test-python: build
	@$(BACKEND) group test
	$(DEV)/bin/python -m pytest $(IN_PARALLEL) $(MARKS) $(PYTEST_FLAGS)

# All of mpi4py's tests and demonstrations; make test runs a part of them.
conformance: build
	@$(BACKEND) group test
	$(DEV)/bin/python -m pytest -m "conformance or not conformance" $(PYTEST_FLAGS) tests/conformance

# Programs that were not written for the checker, with mpiexec --check.
check-others: build
	@$(BACKEND) group test
	$(DEV)/bin/python -m pytest -m "conformance or not conformance" $(PYTEST_FLAGS) tests/check/test_others.py

# Libraries that use mpi4py, compared with MPICH; the table of outcomes is .cache/thirdparty/table.md.
# PYTEST_FLAGS="-k emcee" runs some of them.
test-thirdparty: build
	@$(BACKEND) group test
	$(DEV)/bin/python -m pytest -m thirdparty $(PYTEST_FLAGS) tests/thirdparty

# docs/benchmarks.md has the options.
COMPARE ?=
compare: build
	$(DEV)/bin/python -m gormapy_compare $(COMPARE)

# See tests/rdma/README.md. RDMA_STEPS="transport stress" runs some of the steps.
test-rdma: build
	@$(BACKEND) group test
	PYTHONPATH=pybind/build $(DEV)/bin/python tests/rdma/run.py --go "$(DEV)/bin/python -m gormapy_build go" $(RDMA_STEPS)

# Jobs over verbs on two hosts. RDMA_CASES="everything host" runs some of them.
test-rdma-hosts: build
	@$(BACKEND) group test
	$(DEV)/bin/python tests/rdma/two_hosts.py $(RDMA_CASES)

# The tests of the API over the networks in gocore/fabric/registry that need no hardware.
FABRICS ?= $$(PYTHONPATH=python $(DEV)/bin/python -c 'from gormapy import info; \
	print(*[t["name"] for t in info.report()["transports"] if t["network"] and not t["device"]])')
FABRIC_TESTS ?= tests/api tests/rma tests/faults
test-fabrics: build
	@$(BACKEND) group test
	@fabrics="$(FABRICS)"; test -n "$$fabrics" || exit 1; \
	for f in $$fabrics; do echo "$(DEV)/bin/python -m pytest --fabric $$f $(FABRIC_TESTS)"; \
		$(DEV)/bin/python -m pytest -q $(IN_PARALLEL) --fabric $$f $(PYTEST_FLAGS) $(FABRIC_TESTS) || exit 1; done

# The Python tests with jobs whose ranks are on several nodes, as gocore/launch/nodes.go says.
NODES ?= 2 0,1
NODES_TESTS ?= tests/api tests/rma tests/file tests/slots tests/examples tests/faults tests/launcher tests/trace
test-nodes: build
	@$(BACKEND) group test
	@for n in $(NODES); do echo "$(DEV)/bin/python -m pytest --nodes $$n $(NODES_TESTS)"; \
		$(DEV)/bin/python -m pytest -q $(IN_PARALLEL) -m "$(TESTED)" --nodes $$n $(PYTEST_FLAGS) $(NODES_TESTS) || exit 1; done

# Jobs on several hosts, which are namespaces of this machine, under real launchers. See tests/hosts/README.md.
test-hosts: build
	@$(BACKEND) group test
	$(DEV)/bin/python -m pytest -m hosts $(PYTEST_FLAGS) tests/hosts

# One-sided operations on more than 2^31 elements.
large: build
	@$(BACKEND) group test
	$(DEV)/bin/python -m pytest -m large $(PYTEST_FLAGS) tests/rma

# 100,000 random one-sided operations on 7 ranks, against a serial model.
stress: build
	@$(BACKEND) group test
	$(DEV)/bin/python -m pytest -m stress $(PYTEST_FLAGS) tests/rma

# make check tries a third of them.
faults: build
	@$(BACKEND) group test
	FAULTS=whole $(DEV)/bin/python -m pytest -q tests/faults/test_faulting_memory.py tests/faults/test_bad_memory.py \
		tests/faults/test_reset.py tests/rdma_api/test_faulting_regions.py
	FAULTS=whole FAULT_TABLE=.cache/faults.txt $(DEV)/bin/python -m pytest -q tests/faults/test_table.py; \
		status=$$?; cat .cache/faults.txt; exit $$status

# make check tries a twentieth of them.
interrupts: build
	@$(BACKEND) group test
	INTERRUPTS=whole $(DEV)/bin/python -m pytest -q $(PYTEST_FLAGS) tests/faults/test_every_bytecode.py

# First with the address sanitizer, if cc has one, then with Python's own allocator, which marks what
# is freed and looks at the bytes around every object.
HOSTILE_SECONDS ?= 20
HOSTILE_TESTS := tests/faults/test_hostile_threads.py tests/faults/test_memory_kept.py tests/faults/test_bad_memory.py
SANITIZED := .cache/sanitized
threads: build
	@$(BACKEND) group test
	@library=$$(cc -print-file-name=libasan.so 2>&1); case "$$library" in /*) ;; \
		*) echo 'not with the address sanitizer: cc has none'; exit 0;; esac; \
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED) && cp -r python/gormapy $(SANITIZED)/ && \
	CGO_ENABLED=1 CGO_CFLAGS='-O1 -g -fsanitize=address -fno-omit-frame-pointer' CGO_LDFLAGS=-fsanitize=address \
		go build -tags=netgo,osusergo -buildmode=c-shared -o $(SANITIZED)/gormapy/_gormapy.*.so ./build/_ext-* && \
	rm -f $(SANITIZED)/gormapy/_gormapy.*.h && \
	LD_PRELOAD=$$library PYTHONMALLOC=malloc PYTHONPATH=$(SANITIZED) HOSTILE_SECONDS=$(HOSTILE_SECONDS) \
		ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_sigbus=0:allow_user_segv_handler=1:abort_on_error=1 \
		$(DEV)/bin/python -m pytest -q $(PYTEST_FLAGS) $(HOSTILE_TESTS)
	HOSTILE_SECONDS=$(HOSTILE_SECONDS) PYTHONMALLOC=debug \
		$(DEV)/bin/python -m pytest -q $(PYTEST_FLAGS) $(HOSTILE_TESTS)

# make check tries the first few descriptors, on two ranks.
exhaustion: build
	@$(BACKEND) group test
	EXHAUSTION=whole $(DEV)/bin/python -m pytest $(PYTEST_FLAGS) tests/faults/test_exhaustion.py tests/faults/test_descriptors.py

# make check has some hundreds of callers.
neighbours: build
	@$(BACKEND) group test
	NEIGHBOURS=whole $(DEV)/bin/python -m pytest $(PYTEST_FLAGS) tests/faults/test_neighbours.py tests/faults/test_reused_pid.py
	$(GO) test -count=1 -run 'Pending|Unauthenticated|Acceptor|User|Group|Signal' ./gocore/sys ./gocore/fabric/tcp ./gocore/rdmaapi/...

# make check works for half a minute.
MINUTES ?= 60
soak: build
	@$(BACKEND) group test
	SOAK_MINUTES=$(MINUTES) $(DEV)/bin/python -m pytest -q -s $(PYTEST_FLAGS) tests/soak

# Every operation a million times, a thousand spawns. PYTEST_FLAGS="-k spawn" chooses.
leaks: build
	@$(BACKEND) group test
	LEAKS=whole $(DEV)/bin/python -m pytest -m "exhaustive or not exhaustive" $(PYTEST_FLAGS) tests/leaks

# Go tests for aarch64, by an emulator of programs, which can't start the programs that some tests start.
ARM64_PACKAGES ?= ./gocore/op/... ./gocore/dtype ./gocore/seal ./gocore/handshake ./gocore/agreement ./gocore/mt19937 \
	./gocore/errs ./gocore/choice
test-arm64: $(DEV)/made
	CGO_ENABLED=0 GOARCH=arm64 $(GO) test -short -timeout 20m -exec qemu-aarch64-static -skip Without $(ARM64_PACKAGES)

race: $(DEV)/made
	GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 $(GO) test -race -timeout 20m $(RACE_FLAGS) ./gocore/...

lint: lint-go lint-c lint-python

# The protocols in shared memory, through every interleaving of their accesses.
interleave: $(DEV)/made
	$(GO) test -tags interleave ./gocore/sys/atom/explore
	$(GO) test -tags interleave -run Interleaving -timeout 20m ./gocore/...
	$(GO) test -tags "interleave model" -short ./gocore/cachemodel

# MODEL="-transfer 60 -byte 0.05 -entry 1500" predicts the times of a machine that takes so many nanoseconds.
MODEL ?=
model: $(DEV)/made
	$(GO) test -run - -bench . ./gocore/cachemodel
	$(GO) test -v -tags "interleave model" -timeout 30m ./gocore/cachemodel $(MODEL)

# make interleave tries the first 100 seeds.
SEEDS ?= 1000
simulate: $(DEV)/made
	SEEDS=$(SEEDS) $(GO) test -v -tags interleave -run 'OfSimulation$$' -timeout 60m ./gocore/simulate

# Each fuzz test for FUZZTIME; make test runs their seeds. A number of runs, because a time may end with "context
# deadline exceeded", which is no failure: https://go.dev/issue/75804, until Go 1.27.
FUZZTIME ?= 20000x
fuzz: $(DEV)/made
	@for f in $$(grep -ro '^func Fuzz[A-Za-z]*' --include='*_test.go' gocore | sed 's/func //'); do \
		echo "$${f#*:}"; $(GO) test -run '^$$' -fuzz "^$${f#*:}$$" -fuzztime $(FUZZTIME) "./$$(dirname "$${f%%:*}")" || exit 1; done

# The staticcheck of the nested module keeps its dependencies out of go.mod and
# of the source distribution.
lint-go: $(DEV)/made
	@unformatted=$$($(BACKEND) gofmt -l gocore pybind docs) && \
		if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(GO_PACKAGES)
	$(GO) vet -tags interleave $(GO_PACKAGES)
	CGO_ENABLED=0 GOARCH=arm64 $(GO) vet ./gocore/...
	@$(GO) -C pybind/build/lint build -o $(CURDIR)/.cache/bin/ tool
	PATH=.cache/bin:$$PATH $(BACKEND) staticcheck $(GO_PACKAGES)

lint-c: $(DEV)/made
	@$(BACKEND) group lint
	$(DEV)/bin/clang-format --dry-run -Werror pybind/shim/*.[ch]

# The stub is compared with the live module, which needs the build.
lint-python: build
	@$(BACKEND) group lint
	$(DEV)/bin/ruff check .
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/mypy
	@$(BACKEND) stubs --check
	$(DEV)/bin/python -m mypy.stubtest gormapy --concise --mypy-config-file pyproject.toml \
		--allowlist pybind/build/stubtest.allowlist --ignore-unused-allowlist

stubs: build
	@$(BACKEND) group lint
	@$(BACKEND) stubs

$(DEMO)/made: $(SOURCES)
	@PYTHONPATH=pybind/build $(PYTHON) -m gormapy_build venv $(DEMO)
	@echo 'gormapy: installing into $(DEMO) (the first time fetches and runs a compiler: about a minute)'
	@$(DEMO)/bin/python $(PIP) install --force-reinstall .
	@touch $@

demo: $(DEMO)/made
	@$(DEMO)/bin/mpiexec -n 4 $(DEMO)/bin/python -m gormapy.examples.demo

# See notebooks/README.md.
LESSONS ?=
notebooks test-notebooks: build
	@$(BACKEND) group notebook
	PYTHONPATH=notebooks/tools $(DEV)/bin/python -m lessons $(if $(filter test-%,$@),test,build) $(LESSONS)
	@$(if $(LESSONS)$(filter notebooks,$@),,$(MAKE) --no-print-directory test-browser)

lessons-check: build
	@$(BACKEND) group notebook
	PYTHONPATH=notebooks/tools $(DEV)/bin/python -m lessons checked $(LESSONS)

test-elsewhere: build
	@$(BACKEND) group notebook
	PYTHONPATH=notebooks/tools $(DEV)/bin/python -m lessons elsewhere $(LESSONS)

# JupyterLab in a headless Chromium; says why the tests are skipped where they can't run.
test-browser: build
	@$(BACKEND) group test
	@$(BACKEND) group browser
	@$(DEV)/bin/python tests/browser/prepare.py
	$(DEV)/bin/python -m pytest -m browser $(PYTEST_FLAGS) tests/browser

# The site: docs/README.md. Warnings are errors; pages that were made with some are removed, as they would give none again.
SITE := .cache/docs
docs: build
	@$(BACKEND) group docs
	@mkdir -p $(SITE)
	@$(GO) run ./docs/tools/packagecomments gocore >$(SITE)/comments.json
	@PYTHONPATH=docs/tools $(DEV)/bin/python -m manual $(SITE)/comments.json $(SITE)/source
	$(DEV)/bin/python -m sphinx --quiet --fail-on-warning -c docs -d $(SITE)/doctrees $(SITE)/source $(SITE)/html || \
		{ rm -rf $(SITE)/doctrees $(SITE)/html; exit 1; }

# The programs and reports of docs/checking-classes.md, after a change of docs/programs/checking or of a report.
checking-classes: build
	PYTHONPATH=python:docs/tools $(DEV)/bin/python -m manual.classes

# Screenshots in .cache/screenshots/docs.
test-docs: docs
	@$(BACKEND) group test
	@$(BACKEND) group browser
	@$(DEV)/bin/python tests/browser/prepare.py
	$(DEV)/bin/python -m pytest $(IN_PARALLEL) -m "not exhaustive" $(PYTEST_FLAGS) tests/examples/test_readme.py tests/docs

wheel: $(DEV)/made
	@$(DEV)/bin/python $(PIP) wheel --no-deps --wheel-dir dist .

# For all Pythons and machines; MACHINES=aarch64 chooses.
MACHINES ?=
wheels: $(DEV)/made
	@$(BACKEND) wheels dist $(MACHINES)

sdist: $(DEV)/made
	@$(BACKEND) sdist dist

# What is in dist/, by the tools for that.
RELEASE := .cache/release
$(RELEASE)/made: pybind/build/requirements/release.txt $(DEV)/made
	@PYTHONPATH=pybind/build $(PYTHON) -m gormapy_build venv $(RELEASE)
	@$(RELEASE)/bin/python $(PIP) install --require-hashes -r $<
	@touch $@

check-wheels: $(RELEASE)/made
	$(RELEASE)/bin/python tests/packaging/wheels/check.py dist

# Where they are to run; PLACES="here aarch64" chooses.
PLACES ?=
test-wheels: wheels
	@$(MAKE) --no-print-directory check-wheels
	$(DEV)/bin/python tests/packaging/wheels $(PLACES)

# From the source distribution, by every Python that is found.
test-sdist: sdist
	$(DEV)/bin/python tests/packaging/every_python.py

# Builds again, of nothing that the first build has left, and compares.
AGAIN := $(CURDIR)/.cache/again
test-reproducible: wheels
	@rm -rf $(AGAIN)
	@GOCACHE=$(AGAIN)/go ZIG_GLOBAL_CACHE_DIR=$(AGAIN)/zig $(BACKEND) wheels $(AGAIN) $(MACHINES)
	@for f in $(AGAIN)/*.whl; do cmp $$f dist/$${f##*/} || exit 1; done && echo 'the same bytes twice'

# Writes dist/ from a clean tree; what is published is what has passed. RELEASE_CHECKS= leaves out make check.
RELEASE_CHECKS ?= check
release: $(DEV)/made
	@$(BACKEND) releasable
	@rm -rf dist && mkdir dist
	@$(if $(RELEASE_CHECKS),$(MAKE) --no-print-directory $(RELEASE_CHECKS))
	@$(MAKE) --no-print-directory sdist test-reproducible test-sdist test-wheels
	@$(BACKEND) releasable > dist/NOTES.md
	@cd dist && sha256sum *.whl *.tar.gz > SHA256SUMS && cat SHA256SUMS

clean:
	rm -rf .cache build dist python/gormapy/_bin python/gormapy/*.so
	find pybind python tests -name __pycache__ -type d -prune -exec rm -rf {} +
