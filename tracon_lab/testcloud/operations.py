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

"""What an operator of a test cloud does by command."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any, Callable

from tracon_lab.testcloud import choice
from tracon_lab.testcloud import cloud as cloud_module
from tracon_lab.testcloud import errors
from tracon_watcher.probe import deployment

#: All VMs that a play boots, apart from sensors.
PLAYERS = ('shop', 'batch', 'archive', 'standby', 'early', 'late')
# Seconds after which the engine knows why a VM is where it is.
EXPLAINED = 60.0


class Operator:
    """Works with one cloud.

    :param cloud: with the engine running
    :param tell: called with a line for each thing that happens
    """

    def __init__(self, cloud: cloud_module.TestCloud, tell: Callable[[str], None]) -> None:
        self.cloud = cloud
        self.tell = tell
        self.polling = float(cloud.settings.polling_seconds)

    def openstack(self, *arguments: str) -> Any:
        """Run the operator's command and return what it prints as JSON.

        :raises CloudError: when it fails
        """
        command = [str(pathlib.Path(sys.prefix) / 'bin/openstack'), *arguments, '-f', 'json']
        found = subprocess.run(
            command, capture_output=True, text=True, check=False,
            env={**os.environ, **self.cloud.environment(), 'PYTHONWARNINGS': 'ignore'})
        if found.returncode:
            raise errors.CloudError(f'openstack {" ".join(arguments)}: {found.stderr.strip()}')
        return json.loads(found.stdout)

    def clear(self) -> None:
        """Delete the VMs of an earlier play, whichever it was.

        :raises CloudError: when there are others
        """
        for one in self.cloud.servers.all():
            if one.name not in PLAYERS and not one.name.startswith(deployment.NAME):
                raise errors.CloudError(
                    f'there are other VMs, such as {one.name}, that would disturb what is to be '
                    f'seen: delete them, or name another --directory')
            self.cloud.servers.delete(one)

    def where_would_it_go(self, name: str) -> choice.Choice:
        """Boot a VM where the scheduler wants it, ask why, and delete it again.

        :raises CloudError: when the engine is told of no decision
        """
        made = self.cloud.boot(name)
        found = None
        deadline = time.monotonic() + EXPLAINED
        while found is None:
            try:
                found = choice.read(made.host, self.openstack(
                    'interference', 'explain', made.id, '--long'))
            except errors.CloudError:
                # The engine hears of the VM, and of the decision, a moment later.
                if time.monotonic() > deadline:
                    raise
            if found is None:
                if time.monotonic() > deadline:
                    raise errors.CloudError(
                        f'the engine was told of no decision on {name}: see the log of '
                        f'nova-scheduler')
                time.sleep(0.5)
        self.tell(f'the scheduler put a new VM on {found}')
        self.cloud.servers.delete(made)
        return found
