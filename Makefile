# Everything happens in tox; this only makes tox, and what tox cannot install,
# appear on a machine that has git and python3.

.PHONY: cloud-demo demo test test-all

# Place the same VMs with and without this extension. ARGS='--seeds 20' and so on.
demo:
	@tools/make.sh demo $(ARGS)

# Play, on a real cloud on this machine, how a VM that hammers the disk is found out, avoided and
# moved away from. Needs root.
cloud-demo:
	@tools/make.sh cloud-demo $(ARGS)

# What shows in minutes that it works: the unit tests, and those with a Nova in their process.
# ARGS=py3 runs the unit tests alone.
test:
	@tools/make.sh test $(ARGS)

# Every check: those, style, types, rules of import, lower bounds, documentation, and the tests with
# a whole cloud, real services and real guests. Needs root.
test-all:
	@tools/make.sh test-all
