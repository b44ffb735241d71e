"""The tree as one HTML file that opens offline: move columns about, step through the edges.

Built by pyvis with its library inlined; its two CDN tags are cut, a content security policy
forbids every request, and all texts are escaped.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.releases import TreeRelease
from core.roles import Roles
from pages.shared.lanes import Edge, Layout, lay_out, rule_of
from pages.shared.network import shown_role
from pages.shared.palette import LOOKS, ink

#: Pixels for one unit of the layout.
SCALE = (430, 62)
HEIGHT = 620
#: Half the width of the wall in pixels: thin, because straight edges must reach the gates.
BRICK = 24
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:; form-action 'none'; base-uri 'none'"
)
_CDN = re.compile(r"<(?:link|script)\b[^>]*https?://[^>]*?(?:/>|>\s*</script>|>)", re.DOTALL)


def standalone(release: TreeRelease, title: str = "Tree", *, theme: str = "light") -> bytes:
    """The whole file as bytes; drawn from released and public facts only."""
    names = release.schema.names
    edges = release.edges
    layouts = [
        lay_out(names, release.roles, edges[:step], settled=edges) for step in range(len(edges) + 1)
    ]
    page = _network(names, release.roles, layouts[-1], edges, theme)
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title>{_style(theme)}"
    )
    page = page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">{head}', 1)
    page = page.replace("<html>", '<!DOCTYPE html><html lang="en">', 1)
    stamp = "SIMULATED, NOT PRIVATE" if release.provenance.simulated else ""
    page = page.replace("<body>", f"<body>{_controls(title, stamp, len(edges))}", 1)
    script = _script(_steps(release, layouts), _blocks(layouts[-1]), ink(theme).wall)
    return page.replace("</body>", f"{script}</body>", 1).encode()


def _network(
    names: Sequence[str], roles: Roles, layout: Layout, edges: Sequence[Edge], theme: str
) -> str:
    from pyvis.network import Network

    colours = ink(theme)
    network = Network(
        height=f"{HEIGHT}px", width="100%", bgcolor=colours.paper, cdn_resources="in_line"
    )
    rule = rule_of(roles)
    for name in names:
        role = shown_role(name, roles, rule)
        look, spot = LOOKS[role], layout.spot(name)
        letter = "P" if name in roles.proxies else role.value
        network.add_node(
            name,
            label=f"{letter} {name}",
            title=f"{name}: {look.words}",
            shape=look.shape,
            color=look.colour(theme),
            size=14,
            x=spot.x * SCALE[0],
            y=-spot.y * SCALE[1],
            physics=False,
            font={
                "color": colours.text,
                "size": 15,
                "face": "system-ui, sans-serif",
                "strokeWidth": 5,
                "strokeColor": colours.paper,
            },
        )
    for index, (one, other) in enumerate(edges):
        network.add_edge(one, other, id=index, color=colours.line, width=2.5, physics=False)
    network.set_options(
        json.dumps(
            {
                "physics": {"enabled": False},
                "interaction": {"hover": True, "navigationButtons": False, "keyboard": False},
                "edges": {"smooth": False},
            }
        )
    )
    page = network.generate_html(notebook=False)
    page = re.sub(r"<!-- <link.*?-->", "", page, flags=re.DOTALL)  # a leftover of the template
    page = _CDN.sub("", page)
    page = re.sub(r"<center>\s*<h1>\s*(?:None)?\s*</h1>\s*</center>", "", page)
    return page


def _steps(release: TreeRelease, layouts: Sequence[Layout]) -> list[dict[str, Any]]:
    steps = []
    for index, layout in enumerate(layouts):
        words = "Before the first step: every column stands alone."
        forbidden: Sequence[Any] = release.forbidden
        if index:
            step = release.steps[index - 1]
            forbidden = step.forbidden
            words = f"Step {index}: {step.chosen[0]} — {step.chosen[1]} joined."
        if forbidden:
            words += f" {len(forbidden)} pairs became forbidden: {forbidden[0].reason}"
        places = {spot.name: [spot.x * SCALE[0], -spot.y * SCALE[1]] for spot in layout.spots}
        steps.append({"words": words, "places": places})
    return steps


def _blocks(layout: Layout) -> list[list[float]]:
    """The wall between its gates as rectangles (x, y, width, height) of the canvas."""
    top, bottom = layout.wall
    stops = [top, *(edge for gate in layout.gates for edge in (gate[0], gate[2])), bottom]
    return [
        [-BRICK, -upper * SCALE[1], 2 * BRICK, (upper - lower) * SCALE[1]]
        for upper, lower in zip(stops[::2], stops[1::2], strict=True)
    ]


def _style(theme: str) -> str:
    colours = ink(theme)
    return (
        "<style>"
        f"body{{margin:0;background:{colours.paper};color:{colours.text};"
        "font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
        "#steps{padding:12px 16px;display:flex;flex-wrap:wrap;gap:12px;align-items:center}"
        "#steps h1{font-size:18px;margin:0;flex-basis:100%}"
        "#steps input{flex:1;min-width:160px}"
        "#steps button{font:inherit;padding:4px 12px;border-radius:8px;"
        f"border:1px solid {colours.line};background:transparent;color:inherit;cursor:pointer}}"
        "#words{flex-basis:100%;margin:0;min-height:3em;max-width:80ch}"
        ".card{border:0}#mynetwork{border:0!important;float:none!important}"
        "</style>"
    )


def _controls(title: str, stamp: str, count: int) -> str:
    heading = html.escape(title) + (f" ({html.escape(stamp)})" if stamp else "")
    return (
        f'<div id="steps"><h1>{heading}</h1>'
        '<button id="back" type="button">Back</button>'
        f'<input id="step" type="range" min="0" max="{count}" value="{count}" '
        'aria-label="Step of the tree">'
        '<button id="on" type="button">Next</button>'
        '<button id="play" type="button">Play</button>'
        '<p id="words" aria-live="polite"></p></div>'
    )


def _script(
    steps: Sequence[Mapping[str, Any]], blocks: Sequence[Sequence[float]], colour: str
) -> str:
    # "<" is escaped, so that no name can close the script element; parsed rather than written as an
    # object, where a column called __proto__ would be no member.
    data = json.dumps(json.dumps(steps)).replace("<", "\\u003c")
    return (
        "<script>(function(){"
        f"const steps=JSON.parse({data});"
        "const slider=document.getElementById('step'),words=document.getElementById('words');"
        "let timer=null;"
        f"network.on('beforeDrawing',c=>{{c.fillStyle='{colour}';"
        f"for(const b of {json.dumps(blocks)})c.fillRect(...b);}});"
        "function show(){const at=Number(slider.value);words.textContent=steps[at].words;"
        "nodes.update(Object.entries(steps[at].places).map(([id,p])=>({id:id,x:p[0],y:p[1]})));"
        "edges.update(edges.getIds().map(id=>({id:id,hidden:id>=at,width:id===at-1?5:2.5})));}"
        "function move(by){slider.value=Number(slider.value)+by;show();}"
        "function stop(){clearInterval(timer);timer=null;"
        "document.getElementById('play').textContent='Play';}"
        "slider.addEventListener('input',()=>{stop();show();});"
        "document.getElementById('back').addEventListener('click',()=>{stop();move(-1);});"
        "document.getElementById('on').addEventListener('click',()=>{stop();move(1);});"
        "document.getElementById('play').addEventListener('click',()=>{"
        "if(timer){stop();return;}"
        "if(Number(slider.value)===steps.length-1){slider.value=0;show();}"
        "document.getElementById('play').textContent='Pause';"
        "timer=setInterval(()=>{move(1);if(Number(slider.value)===steps.length-1)stop();},900);});"
        "show();network.fit({animation:false});"
        "})();</script>"
    )
