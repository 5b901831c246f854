# Everything happens in tox; this only makes tox, and what tox cannot install,
# appear on a machine that has git and python3.

.PHONY: demo test

# Place the same VMs with and without this extension. ARGS='--seeds 20' and so on.
demo:
	@tools/make.sh demo $(ARGS)

# Every check: style, types, rules of import, unit and functional tests, documentation.
test:
	@tools/make.sh test
