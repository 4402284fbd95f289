# The two commands of the README: make demo, make test. Both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(shell find cpp -name '*.[ch]pp')
SOURCES := pyproject.toml CMakeLists.txt $(KERNELS)

.PHONY: demo test build check pytest fuzz stubs sanitize clean

demo: $(VENV)/.built
	$(BIN)/python examples/demo.py

test: $(VENV)/.test-tools $(VENV)/.built check pytest

build: $(VENV)/.built

check: $(VENV)/.test-tools $(VENV)/.built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(KERNELS)

pytest: $(VENV)/.test-tools $(VENV)/.built
	$(BIN)/python -m pytest -n 2

# Hostile input for every way into the library; FUZZ="--only files --inputs 1000" for a part of it.
FUZZ ?=
fuzz: $(VENV)/.test-tools $(VENV)/.built
	$(BIN)/python benchmarks/fuzz $(FUZZ)

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "maxmargin needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.4" cmake ninja
	touch $@

# An editable install: Python files take effect at once, C++ files after the next make.
$(VENV)/.built: $(VENV)/.created $(SOURCES)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[plot,images]"
	touch $@

$(VENV)/.test-tools: $(VENV)/.built
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[test]"
	touch $@

# The type stubs of the compiled modules; run this after a change of their bindings.
stubs: $(VENV)/.built
	$(BIN)/python cpp/stubs.py

# The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, in a build tree and a folder of their own. Without
# -S the import hook of the editable install would come first and the tests would run the plain build; --capture=sys
# lets the report of a sanitizer through.
SANITIZED := build/sanitize/site
SANITIZE_RUN = PYTHONPATH=$(SANITIZED):$$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('platlib'))") \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" $(BIN)/python -S
sanitize: $(VENV)/.test-tools
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --upgrade --target $(SANITIZED) \
		-C cmake.define.MAXMARGIN_SANITIZE=ON -C cmake.build-type=RelWithDebInfo -C install.strip=false \
		-C build-dir=build/sanitize/cmake .
	$(SANITIZE_RUN) -c "from maxmargin.tasks import _kernels; assert '/$(SANITIZED)/' in _kernels.__file__, _kernels.__file__"
	$(SANITIZE_RUN) -m pytest --capture=sys tests/kernels

clean:
	rm -rf $(VENV) build
