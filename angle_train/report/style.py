"""The reports' style sheet: light and dark, from phones to paper, without anything from outside."""

from __future__ import annotations

# Series: told apart with every common kind of colour blindness (after Okabe and Ito), and at least 3:1
# against their page, dots with their opacity too. Bands run from dissimilar (warm) to similar (cold).
_LIGHT = (
    "--page:#fff;--ink:#1b2430;--soft:#56606b;--rule:#dde2e7;--box:#f3f5f7;--good:#00684a;--good-box:#e9f6f1;"
    "--bad:#a33c00;--bad-box:#fcf0e9;--s0:#56606b;--s1:#0072b2;--s2:#c44e00;--s3:#007d5c;--s4:#a5477f;--s5:#8a6100;"
    "--b0:#b2182b;--b1:#c4620a;--b2:#717a84;--b3:#2a83b8;--b4:#123f8c"
)
_DARK = (
    "--page:#12161b;--ink:#e6eaee;--soft:#a7b1bb;--rule:#333b44;--box:#1c2229;--good:#57d3a8;--good-box:#10291f;"
    "--bad:#ffa06b;--bad-box:#331b0d;--s0:#a7b1bb;--s1:#5cb6f2;--s2:#ff9a55;--s3:#43cfa0;--s4:#f09bc9;--s5:#eec24e;"
    "--b0:#ff7a85;--b1:#ffb167;--b2:#b5bec8;--b3:#6fc2f0;--b4:#a3adff"
)
_SERIES = "".join(f".s{n}{{--c:var(--s{n})}}" for n in range(6)) + "".join(
    f".b{n}{{--c:var(--b{n})}}" for n in range(5)
)
STYLE = (
    f":root{{color-scheme:light dark;{_LIGHT}}}\n"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}}}}}\n"
    f"{_SERIES}.ink{{--c:var(--ink)}}"
    + """
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;color:var(--ink);
 background:var(--page);max-width:66rem;margin:0 auto;padding:1.2rem 1rem 4rem;overflow-wrap:break-word}
h1{font-size:1.55rem;line-height:1.25;margin:.6rem 0 .2rem}
h2{font-size:1.25rem;margin:2.6rem 0 .5rem;padding-top:.6rem;border-top:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.6rem 0 .4rem}
p{max-width:46rem;margin:.5rem 0}
.sub,.note,figcaption,caption{color:var(--soft)}
.sub,code{overflow-wrap:anywhere}
.note,figcaption,caption{font-size:.9rem}
.verdict{border-left:.4rem solid var(--soft);background:var(--box);padding:.8rem 1.1rem;margin:1rem 0}
.verdict.good{border-color:var(--good);background:var(--good-box)}
.verdict.bad{border-color:var(--bad);background:var(--bad-box)}
.verdict strong{display:block;font-size:1.25rem;line-height:1.35}
.verdict ul{margin:.5rem 0 0;padding-left:1.2rem}
.warning{border-left:.25rem solid var(--bad);padding-left:.8rem}
.scroll{overflow-x:auto;max-width:100%}
.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--s1);outline-offset:2px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.3rem 0 .8rem;font-size:.94rem}
caption{text-align:left;caption-side:bottom;padding-top:.3rem}
th,td{text-align:left;padding:.3rem 1rem .3rem 0;vertical-align:top;border-bottom:1px solid var(--rule);
 font-weight:400;overflow-wrap:normal}
thead th{color:var(--soft);font-weight:600;white-space:nowrap}
.number{text-align:right;white-space:nowrap}
th[scope=row],td:not(.number){min-width:7rem}
@media screen and (max-width:40rem){th,td{padding-right:.6rem}td:not(.number){min-width:4.2rem}}
td.verdict-cell{white-space:nowrap}
caption>span{display:inline-block;position:sticky;left:0;max-width:calc(100vw - 2rem)}
tr.first>*{border-top:2px solid var(--soft)}
tr.changed th{font-weight:600}
.good td.verdict-cell,.bad td.verdict-cell{font-weight:600}
.good td.verdict-cell{color:var(--good)}.bad td.verdict-cell{color:var(--bad)}
td.text{min-width:15rem;max-width:26rem;overflow-wrap:anywhere}
td.text summary{list-style:none}
td.text summary::after{content:" more";color:var(--s1);text-decoration:underline}
td.text details[open] summary{display:none}
figure{margin:1rem 0}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,18rem),1fr));gap:.4rem 1.4rem}
.panel{max-width:26rem;min-width:0}
.panel p{margin:.2rem 0;font-weight:600;font-size:.94rem;overflow-wrap:anywhere}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;list-style:none;padding:0;margin:.3rem 0;font-size:.9rem}
.legend li::before{content:"";display:inline-block;width:1.2em;border-top:.22em solid var(--c);
 vertical-align:middle;margin-right:.4em}
.legend li.dashed::before{border-top-style:dashed}
svg{display:block;width:100%;height:auto;font-size:12px}
svg text{fill:var(--ink)}
.axis,.grid{fill:none;stroke:var(--soft);stroke-width:1}.grid{stroke:var(--rule)}
.line{fill:none;stroke:var(--c);stroke-width:2}.line.dashed{stroke-dasharray:5 4}
.dots{fill:none;stroke:var(--c);stroke-width:4;stroke-linecap:round;opacity:.75}
.dots.big{stroke-width:9;opacity:1}.dots.huge{stroke-width:14;opacity:1}
.bar{fill:var(--c)}
details{margin:.4rem 0}summary{cursor:pointer}
main>details>summary,section>details>summary{font-weight:600;padding:.2rem 0}
pre{background:var(--box);padding:.7rem .9rem;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.88rem}
code{background:var(--box);padding:0 .2rem;font-size:.92em}pre code{padding:0}
@media print{body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}
 figure,tr,.verdict{break-inside:avoid}.scroll{overflow:visible}.verdict{border:1px solid}
 details:not([open])::details-content{content-visibility:visible;display:block;height:auto}}
"""
).strip()
