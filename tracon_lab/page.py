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

"""An HTML page that needs no other file: how reports look, and their tables."""

from __future__ import annotations

import html
import math
from typing import Iterable, Sequence

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.55 system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif;
  color: #22272e; background: #f4f5f7; margin: 0; }
main { max-width: 1060px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 27px; line-height: 1.25; margin: 0 0 6px; }
h2 { font-size: 18px; margin: 0 0 10px; }
section { background: #fff; border: 1px solid #e3e6eb; border-radius: 10px; padding: 20px 24px;
  margin-top: 18px; }
p { margin: 0 0 10px; max-width: 78ch; } .lead { color: #57606a; }
ul { margin: 0 0 10px; padding-left: 20px; } li { max-width: 78ch; margin-bottom: 4px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 14px;
  margin-top: 18px; }
.tile { background: #fff; border: 1px solid #e3e6eb; border-radius: 10px; padding: 14px 18px; }
.tile p { margin: 0; color: #57606a; } .tile b { font-size: 24px; display: block; }
.tile small { color: #57606a; }
svg { max-width: 100%; height: auto; display: block; margin: 6px auto; }
.pair { display: flex; flex-wrap: wrap; gap: 10px; justify-content: center; }
.pair svg { flex: 1 1 380px; min-width: 0; max-width: 480px; margin: 6px 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; width: 100%;
  margin: 8px 0 12px; } th { text-align: left; color: #57606a; font-weight: 600; }
th, td { padding: 5px 9px; border-bottom: 1px solid #eceef2; vertical-align: top; }
td:first-child { white-space: nowrap; } td.number { font-variant-numeric: tabular-nums; }
summary { cursor: pointer; color: #2f6fb3; }
tbody tr:hover { background: #f8f9fb; }
.synthetic { background: #fff4e5; border: 1px solid #f2b266; padding: 10px 14px;
  border-radius: 8px; margin-top: 12px; }
"""
END = '</main></body></html>'


def begin(title: str) -> str:
    """Return the page up to where its content begins."""
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<title>{html.escape(title)}</title><style>{STYLE}</style></head><body><main>')


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table; numbers stand to the right."""
    head = ''.join(f'<th>{html.escape(name)}</th>' for name in columns)
    body = ''.join('<tr>' + ''.join(_cell(value) for value in row) + '</tr>' for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>' \
           '</table></div>'


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f'<td class="number">{"" if math.isnan(value) else f"{value:.2f}"}</td>'
    if isinstance(value, int):
        return f'<td class="number">{value}</td>'
    return f'<td>{html.escape(str(value))}</td>'
