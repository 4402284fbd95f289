# The two commands of the README: make demo, make test. Both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(shell find cpp -name '*.[ch]pp')
SOURCES := pyproject.toml CMakeLists.txt $(KERNELS)

.PHONY: always demo test build check pytest fuzz figures docs docs-gallery docs-check docs-linkcheck stubs sanitize \
	sanitize-threads clang sdist-check lowest portable clean

demo: $(VENV)/.built
	$(BIN)/python examples/demo.py

test: $(VENV)/.test-tools $(VENV)/.built check pytest

build: $(VENV)/.built

check: $(VENV)/.test-tools $(VENV)/.built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/clang-format --dry-run --Werror $(KERNELS)

# Three processes keep two cores busy, as many tests wait for commands that they have started; threads of BLAS besides
# would wait for each other. Each takes over tests of the others when it has none left. Bytecode is kept, as tests start
# hundreds of processes that import the package.
pytest: $(VENV)/.test-tools $(VENV)/.built
	OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist worksteal

# Hostile input for every way into the library; FUZZ="--only files --inputs 1000" for a part of it.
FUZZ ?=
fuzz: $(VENV)/.test-tools $(VENV)/.built
	$(BIN)/python -m benchmarks.fuzz $(FUZZ)

# The figures of the pages, from the records of the benchmarks in benchmarks/results.
figures: $(VENV)/.created
	$(BIN)/python -m benchmarks.figures

# The site: open build/docs/html/index.html. Its gallery has the pictures of the examples that docs-gallery has run;
# docs-check looks at every page in Chromium, and docs-linkcheck asks other hosts. Sphinx warns of a page when it reads
# it, so after a warning, which is an error, all pages are read again.
docs: $(VENV)/.docs-tools build/docs/.settings
	cd docs && ../$(BIN)/python -m _sphinx ../build/docs/source
	$(SPHINX) $(DOCS) -b html build/docs/source build/docs/html || { rm -rf build/docs/doctrees; exit 1; }

docs-gallery: DOCS = -D plot_gallery=1
docs-gallery: docs

docs-check: docs $(VENV)/.test-tools
	$(BIN)/python -m pytest tests/docs/test_built_site.py --site build/docs/html

docs-linkcheck: docs
	$(SPHINX) -b linkcheck build/docs/source build/docs/linkcheck

SPHINX := $(BIN)/python -m sphinx --quiet --fail-on-warning --jobs 2 --conf-dir docs --doctree-dir build/docs/doctrees

# What Sphinx does not see by itself: pages are read again after a change of the code that makes them.
build/docs/.settings: docs/conf.py $(wildcard docs/_sphinx/*.py docs/_templates/*)
	rm -rf build/docs/doctrees build/docs/html
	mkdir -p build/docs
	touch $@

$(VENV)/.docs-tools: $(VENV)/.built
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[docs]"
	touch $@

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "maxmargin needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.4" cmake ninja
	touch $@

# The editable install knows the names of the modules: one that is new or has moved takes effect after the next make.
$(VENV)/.modules: $(VENV)/.created always
	@find src -name '*.py' | sort | cmp -s - $@ || find src -name '*.py' | sort > $@

# An editable install: changes of Python files take effect at once, those of C++ files after the next make.
$(VENV)/.built: $(VENV)/.created $(VENV)/.modules $(SOURCES)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[plot,images]"
	touch $@

$(VENV)/.test-tools: $(VENV)/.built
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[test]"
	touch $@

# The type stubs of the compiled modules; run this after a change of their bindings.
stubs: $(VENV)/.built
	$(BIN)/python cpp/stubs.py

# Other builds of the kernels, each in a build tree and a folder of its own, without warnings, and the tests that are run
# with it. Without -S the import hook of the editable install would come first and the tests would run the plain build;
# --capture=sys lets the report of a sanitizer through.
FLAVORS := sanitize sanitize-threads clang portable
SITE = build/$@/site
RUN = PYTHONPATH=$(SITE):$$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('platlib'))") $(SETTINGS) \
	$(BIN)/python -S
$(FLAVORS): $(VENV)/.test-tools
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --upgrade --target $(SITE) \
		-C cmake.define.MAXMARGIN_WERROR=ON $(BUILD) -C build-dir=build/$@/cmake .
	$(RUN) -c "from maxmargin.tasks import _kernels; assert '/$(SITE)/' in _kernels.__file__, _kernels.__file__"
	$(RUN) -m pytest --capture=sys -o timeout=3600 $(TESTS)

# AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: BUILD = -C cmake.define.MAXMARGIN_SANITIZE=address,undefined $(DEBUG)
sanitize: SETTINGS = ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)"
sanitize: TESTS = tests/kernels tests/fuzz/test_kernels.py
DEBUG := -C cmake.define.CMAKE_CXX_COMPILER=g++ -C cmake.build-type=RelWithDebInfo -C install.strip=false

# ThreadSanitizer, which needs addresses where it expects them: setarch turns their randomization off, where it may.
# It does not see how the threads of NumPy's BLAS wait for each other, so these get one.
sanitize-threads: BUILD = -C cmake.define.MAXMARGIN_SANITIZE=thread $(DEBUG)
sanitize-threads: SETTINGS = TSAN_OPTIONS=halt_on_error=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
	$$(setarch -R true 2>/dev/null && echo setarch -R) env LD_PRELOAD="$$(g++ -print-file-name=libtsan.so)"
sanitize-threads: TESTS = tests/kernels --threads 4

clang: BUILD = -C cmake.define.CMAKE_CXX_COMPILER=clang++
clang: TESTS = tests/kernels

# What systems that are not at hand compile: no versions of functions for several machines, no sign of char, and streams
# for numbers as text.
portable: BUILD = -C cmake.define.MAXMARGIN_PORTABLE=ON
portable: TESTS = tests/kernels

# The source distribution, installed in an environment of its own, as users without a wheel do.
SDIST := build/sdist
sdist-check: $(VENV)/.created
	rm -rf $(SDIST)
	$(BIN)/python -c "from scikit_build_core.build import build_sdist; build_sdist('$(SDIST)')"
	$(PYTHON) -m venv $(SDIST)/venv
	$(SDIST)/venv/bin/python -m pip install --quiet $(SDIST)/*.tar.gz
	cd $(SDIST) && venv/bin/python -P ../../tests/installed.py

# The lowest versions of dependencies that pyproject.toml allows, which make test, with the newest, does not try. Of their
# own dependencies they get the newest, whose warnings that they are out of date are not errors here.
LOWEST := build/lowest
LOWEST_EXTRAS := plot images scans rerank parquet zstd nltk
lowest: $(VENV)/.built
	rm -rf $(LOWEST)
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir $(LOWEST) .
	$(PYTHON) -m venv $(LOWEST)/venv
	$(LOWEST)/venv/bin/python -m pip install --quiet uv
	$(LOWEST)/venv/bin/uv pip compile --quiet --python $(LOWEST)/venv/bin/python --resolution lowest-direct \
		$(LOWEST_EXTRAS:%=--extra %) --output-file $(LOWEST)/constraints.txt pyproject.toml
	$(LOWEST)/venv/bin/python -m pip install --quiet --constraint $(LOWEST)/constraints.txt \
		"$$(echo $(LOWEST)/*.whl)[$$(echo $(LOWEST_EXTRAS) | tr ' ' ',')]" pytest pytest-timeout hypothesis conllu rapidfuzz
	$(LOWEST)/venv/bin/python -P tests/installed.py
	OPENBLAS_NUM_THREADS=1 $(LOWEST)/venv/bin/python -m pytest -p no:cacheprovider -W default \
		tests/estimators tests/structures tests/solvers/test_column_generation.py tests/tasks/tagging/cli \
		tests/tasks/tagging/io tests/tasks/segmentation/images tests/tasks/reranking/metrics \
		--deselect tests/tasks/tagging/cli/test_tag_commands.py::test_evaluation  # expects no warnings of matplotlib

clean:
	rm -rf $(VENV) build
