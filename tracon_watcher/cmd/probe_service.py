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

"""``tracon-probe``: reads the sensors of probe VMs for ever, and tells what they feel."""

from __future__ import annotations

import asyncio
import pathlib
import signal
import sys

from aiohttp import web
from oslo_config import cfg
from oslo_log import log as logging

from tracon_watcher.conf import probe as options
from tracon_watcher import errors
from tracon_watcher.probe import answers
from tracon_watcher.probe import controller
from tracon_watcher.probe import detection
from tracon_watcher.probe import generator

LOG = logging.getLogger(__name__)
PATH = '/v1/states'


def main(argv: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; return the exit code."""
    conf = cfg.ConfigOpts()
    logging.register_options(conf)
    options.register_opts(conf)
    try:
        conf(sys.argv[1:] if argv is None else argv, project='tracon', prog='tracon-probe')
        logging.setup(conf, 'tracon')
        return asyncio.run(run(conf))
    except (errors.TraconError, cfg.Error, OSError) as error:
        print(f'tracon-probe: {error}', file=sys.stderr)
        return 2


async def run(conf: cfg.ConfigOpts) -> int:
    """Read sensors and answer until a signal comes.

    :raises tracon_watcher.errors.TraconError: when a file cannot be used
    """
    wanted = conf[options.GROUP.name]
    secret = answers.read_secret(pathlib.Path(wanted.secret_file))
    known = detection.load(wanted.baselines_file)
    sensors = controller.File(wanted.sensors_file)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with generator.session() as client:
        one = controller.ManagementController(client, secret, sensors, known,
                                              wanted.interval_seconds,
                                              wanted.deadline_seconds, at_once=wanted.at_once)
        runner = web.AppRunner(application(one), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, str(wanted.listen_host), wanted.listen_port).start()
        LOG.info('Reading %d sensors; states are at http://%s:%d%s', len(sensors()),
                 wanted.listen_host, wanted.listen_port, PATH)
        reading = asyncio.create_task(one.run())
        waiting = asyncio.create_task(ended.wait())
        await asyncio.wait((reading, waiting), return_when=asyncio.FIRST_COMPLETED)
        reading.cancel()
        await runner.cleanup()
        if not ended.is_set():
            # It never returns by itself; what it raised is told.
            await reading
    return 0


def application(one: controller.ManagementController) -> web.Application:
    """Return what answers GET /v1/states."""
    async def states(request: web.Request) -> web.Response:
        return web.json_response(one.states())

    found = web.Application()
    found.router.add_get(PATH, states)
    return found


if __name__ == '__main__':
    sys.exit(main())
