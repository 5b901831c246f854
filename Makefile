# Everything happens in tox; this only makes tox, and what tox cannot install,
# appear on a machine that has git and python3.

.PHONY: cloud-demo demo tenant-demo test test-all

# Place the same VMs with and without this extension. ARGS='--seeds 20' and so on.
demo:
	@tools/make.sh demo $(ARGS)

# Play, on a real cloud on this machine, how a VM that hammers the disk is found out, avoided and
# moved away from. Needs root.
cloud-demo:
	@tools/make.sh cloud-demo $(ARGS)

# Contend with one of three workers of HAProxy, balanced in three ways, in six minutes.
# Needs root.
tenant-demo:
	@tools/make.sh tenant-demo $(ARGS)

# What shows in minutes that it works: the unit tests, and six with a Nova in their process.
# ARGS=unit runs the unit tests alone.
test:
	@tools/make.sh test $(ARGS)

# Every check, part by part, with a table at the end; most need root. ARGS='storage cloud' runs these
# parts alone; tools/parts.py has them all.
test-all:
	@tools/make.sh test-all $(ARGS)
