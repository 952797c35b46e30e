# Measurements whose results the documents show. Each takes minutes or hours.

# With faults there are thousands of schedules for each strategy, so those with the fewest preemptions; a safe one is only
# safe if all were run.
EXPLORED = $(foreach part,none crash expire,docs/results/explore-$(part).json)
explore-docs: programs ## explore every strategy with each fault, for the table in docs/strategies.md
	@mkdir -p docs/results
	$(BUILD)/loadtest explore --export-json docs/results/explore-none.json
	$(BUILD)/loadtest explore --faults crash --export-json docs/results/explore-crash.json
	$(BUILD)/loadtest explore --faults expire --export-json docs/results/explore-expire.json
	@# Exit status 3: where several orders wait for one row, the next one may be PostgreSQL's choice, and such a row's search ends.
	-$(BUILD)/loadtest explore --actors 3 --time 60s --export-json docs/results/three-orders.json
	docs/tables explore $(EXPLORED) docs/results/three-orders.json >$(BUILD)/explore.md
	docs/insert explore $(BUILD)/explore.md docs/strategies.md
	$(MAKE_NOW) drawings

# Two requests each. A run through the gate ends with exit status 1, because the sample oversells.
gate-speed: programs ## measure how many schedules per second explore runs through the gate and without it, for docs/own-service.md
	$(MAKE_NOW) deps-peers
	$(BUILD)/loadtest explore --strategies read-write --sample 2000 --jobs 1 --export-json $(BUILD)/gate-direct.json
	for run in 1 2 3 4 5; do \
	    NODE_PATH=$(abspath $(BUILD))/peers/modules/usr/share/nodejs:/usr/share/nodejs $(BUILD)/loadtest explore samples/own/node/shop.json \
	        --show 0 --export-json $(BUILD)/gate-$$run.json || [ $$? = 1 ] || exit; \
	done
	docs/tables gate $(BUILD)/gate-direct.json $(BUILD)/gate-[1-5].json >$(BUILD)/gate.md
	docs/insert gate $(BUILD)/gate.md docs/own-service.md

RUSH_STRATEGIES := select-for-update,atomic-decrement,atomic-statement,optimistic,redis-lock,batched

readme: all ## measure the figures of README.md and docs/{results,strategies,choosing,performance,rush}.md again
	@mkdir -p docs/results
	$(BUILD)/loadtest compare --repeat 3 --export-json docs/results/compare.json
	BUILD=$(BUILD) bench/bench --export-json docs/results/bench.json
	$(BUILD)/loadtest rush --strategies $(RUSH_STRATEGIES) --duration 10s --export-json docs/results/rush-share.json
	$(BUILD)/loadtest rush --strategies select-for-update,batched --rate 3000 --timeout 30s --export-json docs/results/rush-rate.json
	$(MAKE_NOW) tables
	$(MAKE_NOW) peers ARGS=

# The pictures of the documents. A report of the same result has all pictures.
drawings: draw-compare draw-ten draw-rush-rate draw-bench draw-growth draw-explore draw-soak
draw-%: programs
	$(BUILD)/loadtest report docs/results/$*.json --format svg --output docs/results/$*.svg
draw-ten: programs
	docs/tables ten docs/results/compare.json | $(BUILD)/loadtest report - --format svg --output docs/results/ten.svg
draw-explore: programs
	$(BUILD)/loadtest report $(EXPLORED) --format svg --output docs/results/explore.svg

tables: programs growth-table peers-table drawings ## put the stored results into the documents, as tables and pictures, without a measurement
	docs/tables demo docs/results/compare.json >$(BUILD)/demo.md
	docs/insert demo $(BUILD)/demo.md README.md
	$(BUILD)/loadtest report docs/results/compare.json --format markdown >$(BUILD)/compare.md
	{ sed '/^|/,$$d' $(BUILD)/compare.md; docs/tables compare docs/results/compare.json; sed '1,/^|/d; /^|/d' $(BUILD)/compare.md; } >$(BUILD)/table.md
	docs/insert compare $(BUILD)/table.md docs/results.md
	docs/tables locks docs/results/compare.json >$(BUILD)/locks.md
	docs/insert locks $(BUILD)/locks.md docs/strategies.md
	$(BUILD)/loadtest report docs/results/bench.json --format markdown >$(BUILD)/bench.md
	docs/insert bench $(BUILD)/bench.md docs/performance.md
	$(BUILD)/loadtest report docs/results/rush-share.json --format markdown >$(BUILD)/rush.md
	docs/insert rush $(BUILD)/rush.md docs/rush.md
	docs/tables choosing docs/results/compare.json docs/results/bench.json >$(BUILD)/choosing.md
	docs/insert choosing $(BUILD)/choosing.md docs/choosing.md

peers: ## measure oversell beside two small services, in Node and in Java, and pgbench, for README.md (ARGS="--seconds 2 --rounds 1"; --check: only that they sell correctly)
	$(MAKE_NOW) deps-peers
	$(BUILD_NOW) programs $(BUILD)/peers/shop.jar || make/build-failed $@ $(BUILD)
	@mkdir -p docs/results
	@BUILD=$(BUILD) bench/peers $(ARGS) --export-json docs/results/peers.json
	$(if $(filter --check,$(ARGS)),,$(MAKE_NOW) peers-table && cat $(BUILD)/peers.md)

peers-table:
	@mkdir -p $(BUILD)
	docs/tables peers docs/results/peers.json >$(BUILD)/peers.md
	docs/insert peers $(BUILD)/peers.md README.md

# A jar that names the libraries, so that it runs by `java -jar`.
JARS := $(patsubst %,/usr/share/java/%.jar,HikariCP postgresql slf4j-api slf4j-simple jetty9-server jetty9-http jetty9-io \
          jetty9-util jetty9-util-ajax servlet-api)
$(BUILD)/peers/shop.jar: samples/java/Shop.java make/docs.mk
	@mkdir -p $(@D)
	$(call say,JAVA,$@)rm -rf $(@D)/classes && javac -Xlint:all -Werror -cp $(subst $() ,:,$(JARS)) -d $(@D)/classes $< && \
	    printf 'Class-Path: %s\n' '$(JARS)' | jar --create --file $@ --manifest /dev/stdin --main-class Shop -C $(@D)/classes .

# CONNECTIONS, PRODUCTS and ORDERS are the largest values. DURATION is the length of each measurement.
GROWTH_LIMITS = $(if $(CONNECTIONS),--connections $(CONNECTIONS)) $(if $(PRODUCTS),--products $(PRODUCTS)) \
                $(if $(ORDERS),--orders $(ORDERS)) $(if $(DURATION),--duration $(DURATION))
# CONNECTIONS is also a setting of the service, which must have its default.
bench-growth: programs ## measure how speed changes with connections, products and stored orders, for docs/performance.md (options: CONNECTIONS=4 PRODUCTS=10 ORDERS=10000000 DURATION=1s)
	@mkdir -p docs/results
	env -u CONNECTIONS BUILD=$(BUILD) bench/growth $(GROWTH_LIMITS) --export-json docs/results/growth.json
	$(MAKE_NOW) growth-table draw-growth

growth-table: programs
	$(BUILD)/loadtest report docs/results/growth.json --format markdown >$(BUILD)/growth.md
	docs/insert growth $(BUILD)/growth.md docs/performance.md

# The end-to-end tests of the page take the pictures, and check what is on them.
pictures: ## take the animation of README.md and the picture of docs/page.md in a real browser
	$(MAKE_NOW) deps-test
	$(call install_packages,$(DEPS_PICTURES))
	$(BUILD_NOW) programs
	BUILD=$(BUILD) tests/run e2e -k 'readme_picture or second_process_is_on_lanes_of_its_own'
	cp $(BUILD)/tests/screenshots/page.png docs/results/page.png
	docs/animate docs/results/lost-update.gif $(BUILD)/tests/screenshots/lost-update-?.png

# One fault after the other, each with its own result, so that what has been broken is not broken again.
FAULTS ?= $(shell $(BUILD)/loadtest faults --faults help | sed 's/^ *\([a-z0-9-]*\) .*/\1/')
faults: programs ## inject every fault under every strategy, for docs/reliability.md; hours; continues after an interruption (FAULTS="kill pause")
	$(MAKE) --no-print-directory $(FAULTS:%=$(BUILD)/faults/%.json)
	docs/tables faults $(FAULTS:%=$(BUILD)/faults/%.json) >$(BUILD)/faults.md
	docs/insert faults $(BUILD)/faults.md docs/reliability.md
	for fault in $(FAULTS); do $(BUILD)/loadtest report $(BUILD)/faults/$$fault.json --format csv || exit; done | \
	    awk 'NR == 1 || !/^fault,/' >docs/results/faults.csv
	@! grep -lE '"verdict": "(broken|not-caught|nothing-shown)"' $(FAULTS:%=$(BUILD)/faults/%.json)

# One that does not go as expected (exit status 1) has its result as well.
$(BUILD)/faults/%.json: $(BUILD)/loadtest $(BUILD)/order-service
	@mkdir -p $(@D)
	$(BUILD)/loadtest faults --faults $* $(ARGS) --export-json $@.new || [ $$? = 1 ]
	mv $@.new $@

# Every safe strategy sells three hundredths of the orders, and the two quickest the rest: most of the others are as fast as
# one row of PostgreSQL.
SOAK_ORDERS ?= 10000000
SOAK         = $(BUILD)/loadtest soak $(ARGS) --resume $(BUILD)
soak: programs ## sell ten million orders under the safe strategies, for docs/reliability.md; hours; continues after an interruption (SOAK_ORDERS=…)
	@mkdir -p docs/results
	$(SOAK)/soak.json --orders $$(($(SOAK_ORDERS) * 48 / 100)) --export-json docs/results/soak.json
	$(SOAK)/soak-long.json --strategies batched,redis-stock --orders $$(($(SOAK_ORDERS) * 52 / 100)) --export-json docs/results/soak-long.json
	docs/tables soak docs/results/soak.json docs/results/soak-long.json >$(BUILD)/soak.md
	docs/insert soak $(BUILD)/soak.md docs/reliability.md
	$(MAKE_NOW) draw-soak
