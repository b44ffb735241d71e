"""The report's look: system fonts, both themes, readable on a phone and on paper."""

from __future__ import annotations

#: Nothing may be fetched, run or sent.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "base-uri 'none'"
)

STYLE = """<style>
:root{--paper:#FFFFFF;--text:#0F1219;--soft:#5B6172;--line:#CDD1DD;--accent:#3D4FB8;
--good:#12493A;--watch:#8A5200;--poor:#A8201A;--s:#C64E11;--o:#0B66E4;--a:#12493A;--i:#6F7078;
--wall:#CDD1DD}
@media (prefers-color-scheme:dark){:root{--paper:#12141B;--text:#ECEEF4;--soft:#A5AABA;
--line:#383E52;--accent:#8C9BFF;--good:#5CEBAA;--watch:#F2B45C;--poor:#FF8E85;--s:#D9731A;
--o:#6C86F0;--a:#5CEBAA;--i:#A9AAB2;--wall:#383E52}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--text);
font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif}
main{max-width:1100px;margin:0 auto;padding:16px}
h1{font-size:26px;line-height:1.25}h2{font-size:20px;margin-top:40px}h3{font-size:17px}
p,li{max-width:80ch;overflow-wrap:anywhere}
.soft{color:var(--soft)}
.banner{border:2px solid var(--good);border-radius:8px;padding:12px 16px;max-width:none}
.banner.warning{border-color:var(--poor)}
.banner.warning strong{color:var(--poor);display:block;font-size:20px}
.table{overflow-x:auto;margin:12px 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:4px 0}
th,td{text-align:left;vertical-align:top;padding:6px 10px;border-bottom:1px solid var(--line);
min-width:5em}
td.number{white-space:nowrap;text-align:right}
.verdict{white-space:nowrap;font-weight:600}
.good{color:var(--good)}.watch{color:var(--watch)}.poor{color:var(--poor)}
.unknown{color:var(--soft)}
.scores{list-style:none;margin:0;padding:0;display:grid;gap:12px;
grid-template-columns:repeat(auto-fill,minmax(min(100%,320px),1fr))}
.score{border:1px solid var(--line);border-radius:8px;padding:12px 16px;max-width:none}
.score h4{margin:4px 0;font-size:16px}.score p{margin:4px 0}
.score .value{font-size:24px;font-weight:600;font-variant-numeric:tabular-nums}
svg{max-width:100%;height:auto}svg text{font:13px system-ui,'DejaVu Sans',sans-serif;
fill:var(--text)}
@media print{.table{overflow:visible}h2{break-after:avoid}tr,.score{break-inside:avoid}}
</style>"""
