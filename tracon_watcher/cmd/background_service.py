# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""``tracon-background``: throttles background work on a compute host, for its VMs' sake."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import stat
import sys
import threading
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
import prometheus_client

from tracon_watcher.background import cgroups
from tracon_watcher.background import controllers
from tracon_watcher.background import daemon
from tracon_watcher.background import regulator
from tracon_watcher.conf import background as options
from tracon_watcher import errors

LOG = logging.getLogger(__name__)
_TIGHTEN = cfg.BoolOpt('tighten', default=False, help='Write the safest limits, and exit.')


def main(argv: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; return the exit code."""
    # oslo.messaging registers some of its options nowhere else.
    conf = cfg.CONF
    logging.register_options(conf)
    # The outbox says once that the broker is away; oslo.messaging would with each attempt.
    logging.set_defaults(default_log_levels=logging.get_default_log_levels() + [
        'oslo.messaging=CRITICAL', 'oslo_messaging=CRITICAL'])
    options.register_opts(conf)
    conf.register_cli_opt(_TIGHTEN)
    try:
        conf(sys.argv[1:] if argv is None else argv, project='tracon', prog='tracon-background')
        logging.setup(conf, 'tracon')
        one = build(conf)
        if not conf.tighten:
            return run(conf, one)
        one.tighten()
        return int(bool(one.wrong))
    except (errors.TraconError, cfg.Error, OSError) as error:
        print(f'tracon-background: {error}', file=sys.stderr)
        return 2


def run(conf: cfg.ConfigOpts, one: daemon.Daemon) -> int:
    """Look once a second; write the safest limits at the end."""
    wanted = conf[options.GROUP.name]
    missing = one.tree.missing()
    if missing:
        raise errors.InvalidOption('groups', ', '.join(one.tree.names), (
            f'{missing[0]} is not there; have the group made with this controller (version 2: '
            f'cgroup.subtree_control of the group above it)'))
    engine = outbox(conf)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_unused: ended.set())
    prometheus_client.REGISTRY.register(daemon.Metrics(one))
    prometheus_client.start_http_server(wanted.listen_port, wanted.listen_host)
    if engine is not None:
        engine.start()
    try:
        one.step()
        daemon.tell_systemd('READY=1')
        LOG.info('Throttling %s for the VMs at %s (control groups, version %d)%s',
                 ', '.join(one.tree.names), wanted.libvirt_uri, one.tree.version,
                 '; dry run: nothing is written' if wanted.dry_run else '')
        while not ended.wait(daemon.INTERVAL):
            one.step()
            if engine is not None:
                engine.take(one.regulator.episodes)
            daemon.tell_systemd('WATCHDOG=1')
    finally:
        one.tighten()
    return 0


def outbox(conf: cfg.ConfigOpts) -> Any:
    """Return an :class:`.episode_outbox.EpisodeOutbox`; None without a broker, and in a dry run.

    :raises tracon_watcher.errors.InvalidOption: when ``transport_url`` cannot be used
    """
    try:
        # Not above: whatever is wrong with oslo.messaging, the safest limits can be written.
        from tracon_watcher.background import episode_outbox
        from tracon_watcher.messaging import protocol
    except ImportError as error:
        LOG.warning('tracon-engine cannot be told of throttling, which goes on: %s; install '
                    'tracon-watcher[background]', error)
        return None
    wanted, connect = conf[options.GROUP.name], protocol.connector(conf)
    if wanted.dry_run or not connect.configured:
        return None
    return episode_outbox.EpisodeOutbox(connect(), wanted.host or socket.gethostname())


def build(conf: cfg.ConfigOpts, root: pathlib.Path = pathlib.Path('/')) -> daemon.Daemon:
    """Return the daemon that is configured.

    :raises tracon_watcher.errors.InvalidOption: naming option, value and remedy
    """
    wanted = conf[options.GROUP.name]
    device = None
    capacities = {}
    if wanted.network_device:
        capacities[regulator.NETWORK] = 1e6 / 8 * _needed(
            wanted, 'network_capacity', 'what it can send, Mbit/s, with network_device')
    if wanted.disk_device:
        device = _device(wanted.disk_device)
        if wanted.disk_requests is not None:
            capacities[regulator.REQUESTS] = wanted.disk_requests
        if wanted.disk_requests is None or wanted.disk_capacity is not None:
            capacities[regulator.BYTES] = 1e6 * _needed(
                wanted, 'disk_capacity', 'it or disk_requests with disk_device')
    cpus = None
    if wanted.cpus:
        try:
            cpus = cgroups.parsed(wanted.cpus)
        except ValueError as error:
            raise errors.InvalidOption('cpus', wanted.cpus, str(error)) from None
    own = (root / 'proc/self/cgroup').read_text(encoding='utf-8')
    tree = cgroups.ControlGroups(wanted.groups, device, pathlib.Path(wanted.cgroup_root), own)
    shaper = None
    if wanted.network_device:
        shaper = cgroups.Shaper(wanted.network_device, wanted.network_parent)
    settings = regulator.Settings(
        controllers.Setting(wanted.memory_factor, wanted.memory_window),
        controllers.Setting(wanted.rate_factor, wanted.rate_window),
        controllers.Setting(wanted.processor_factor, wanted.processor_window),
        controllers.Aimd(wanted.quota_minimum, wanted.quota_increase, wanted.quota_decrease),
        capacities, wanted.minimum_share, kill=wanted.memory_action == 'kill')
    throttled = daemon.throttled_times(root)
    observer = daemon.Observer(daemon.source(wanted.libvirt_uri, capacities, throttled), tree,
                               capacities, root, cpus)
    return daemon.Daemon(observer, regulator.Regulator(settings), tree, shaper, throttled,
                         wanted.dry_run)


def _needed(wanted: cfg.ConfigOpts.GroupAttr, name: str, what: str) -> float:
    value = wanted[name]
    if value is None:
        raise errors.InvalidOption(name, value, f'state {what}')
    return float(value)


def _device(path: str) -> str:
    """Return the number of a block device."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise errors.InvalidOption('disk_device', path, f'{error.strerror}; "lsblk" lists block '
                                                        f'devices') from None
    if not stat.S_ISBLK(found.st_mode):
        raise errors.InvalidOption('disk_device', path, 'no block device; "lsblk" lists them')
    return f'{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}'


if __name__ == '__main__':
    sys.exit(main())
