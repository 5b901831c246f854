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

"""Which requests are placements of something new, and which are moves that must not be refused."""

from __future__ import annotations

from tracon_watcher.placement import cpu_shares


def never_refused(spec, resident: bool) -> bool:
    """Say whether a request is weighed only.

    A RequestSpec does not name its operation. It shows

    * rebuild by the hint ``_nova_check_type``;
    * evacuation and live migration by ``ignore_hosts``; resize and cold migration too, unless
      resizing to the same host is allowed;
    * live migration, resize, cold migration and unshelving by the cell that the destination is
      restricted to, which Nova states for existing instances only;
    * forced and requested hosts by name.

    An instance that the snapshot shows running is being moved, whatever else is said.
    Unshelving counts as a move: the instance exists, and its owner has no other way to it.

    :param spec: RequestSpec
    :param resident: whether the snapshot has the instance
    """
    if resident or _value(spec, 'force_hosts') or _value(spec, 'force_nodes') or _value(
            spec, 'ignore_hosts'):
        return True
    if (_value(spec, 'scheduler_hints') or {}).get('_nova_check_type'):
        return True
    destination = _value(spec, 'requested_destination')
    if destination is None:
        return False
    # Request filters make a destination with aggregates alone for plain boots.
    return bool(_value(destination, 'host') or _value(destination, 'node')
                or _value(destination, 'cell'))


def boots_from_volume(spec) -> bool:
    """Say whether a newcomer's disk is a volume, wherever it is placed."""
    return bool(_value(spec, 'is_bfv'))


def kind(spec) -> tuple[str, str, str]:
    """Return (project, flavor name, image), under which the profiles of earlier VMs are found.

    The flavor is named as hypervisors name it in a domain's metadata. A VM that boots from a
    volume has no image, which is ''.
    """
    image = _value(spec, 'image')
    return (_value(spec, 'project_id') or '', spec.flavor.name,
            (_value(image, 'id') if image is not None else None) or '')


def kind_of_instance(instance) -> tuple[str, str, str] | None:
    """Return the same of an instance, None unless it is loaded: nothing is fetched for it."""
    for field in ('flavor', 'project_id', 'image_ref'):
        if field not in instance:
            return None
    return instance.project_id or '', instance.flavor.name, instance.image_ref or ''


def vcpus(flavor) -> int:
    """Return how many virtual CPUs a flavor has, 1 where that is not loaded."""
    return _value(flavor, 'vcpus') or 1


def cpu_weight(flavor) -> float:
    """Return the weight of a flavor's VMs on the cores they share; 0 for cores of their own."""
    return cpu_shares.weight(_value(flavor, 'extra_specs') or {})


def _value(thing, name: str):
    """Return a field of a Nova object, None when it is not set; never loads it."""
    return getattr(thing, name) if name in thing else None
