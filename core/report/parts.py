"""The tables of a report; every text and number is escaped on its way into a cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.audit.audits import ModelAudit, RuleAudit
from core.audit.fidelity import ReleaseDistances
from core.audit.figures import Figure, Topic
from core.audit.proxies import ProxySuggestion
from core.audit.scorecard import Score, Scorecard
from core.audit.settings import AuditSettings
from core.privci.certificate import Certificate
from core.report.words import MARKS, NONE, compared, interval, number, text

#: Rows of a table that lists the columns or pairs furthest apart.
LONGEST = 25
FIGURE_HEADER = ("What", "Value", "Interval", "Compare with", "To know")


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
) -> str:
    """A table that scrolls sideways on a phone; cells are HTML that is escaped already.

    Parameters
    ----------
    numbers
        Positions of columns that hold numbers.
    """
    listed = list(rows)
    if not listed:
        return ""
    lines = []
    for cells in listed:
        first, *others = cells
        inner = "".join(
            f'<td class="number">{cell}</td>' if index in numbers else f"<td>{cell}</td>"
            for index, cell in enumerate(others, 1)
        )
        lines.append(f'<tr><th scope="row">{first}</th>{inner}</tr>')
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in header)
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{text(caption)}"><table>'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def score_cards(scorecard: Scorecard) -> str:
    """The scorecard, topic by topic."""
    parts = ['<p class="soft">Thresholds are conventions where the reason says so.</p>']
    for topic in Topic:
        cards = [_card(score) for score in scorecard.about(topic)]
        if cards:
            heading = text(topic.value.capitalize())
            parts.append(f'<h3>{heading}</h3><ul class="scores">{"".join(cards)}</ul>')
    return "".join(parts)


def _card(score: Score) -> str:
    shape, word = MARKS[score.verdict]
    figure = score.figure
    ends = interval(figure)
    between = f"{text(ends)} ({figure.level:.0%} interval)<br>" if ends != NONE else ""
    against = f"Compare with {text(compared(figure))}" if figure.baseline is not None else ""
    return (
        f'<li class="score"><p class="verdict {score.verdict.value}">{shape} {text(word)}</p>'
        f"<h4>{text(figure.title)}</h4>"
        f'<p class="value">{text(number(figure.value, figure.unit))}</p>'
        f'<p class="soft">{between}{against}</p><p>{text(score.why)}</p></li>'
    )


def figure_table(caption: str, figures: Iterable[Figure]) -> str:
    """Figures with interval, comparison and caveat."""
    listed = list(figures)
    return table(caption, FIGURE_HEADER, map(_row, listed), numbers=(1, 2))


def _row(figure: Figure) -> list[str]:
    return [
        text(figure.title),
        text(number(figure.value, figure.unit)),
        text(interval(figure)),
        text(compared(figure)),
        text(figure.reason or NONE),
    ]


def proof(certificate: Certificate) -> str:
    """The certificate's sentences."""
    words = certificate.words
    return "<ul>" + "".join(f"<li>{text(sentence)}</li>" for sentence in words) + "</ul>"


def released_fidelity(found: ReleaseDistances) -> str:
    """Figures, and the released tables furthest beyond their noise."""
    parts = [figure_table("Synthetic rows against the released noisy tables", found.figures())]
    for kind, distances in (("columns", found.one_way), ("pairs", found.two_way)):
        if distances is None:
            continue
        rows = [
            [
                text(" × ".join(distances.names[place])),
                text(number(float(distances.tv[place]), "share")),
                text(number(float(distances.tv_noise[place]), "share")),
                "pooled cells" if distances.merged[place] else "",
            ]
            for place in distances.worst(LONGEST)
        ]
        parts.append(
            table(
                f"Released {kind} furthest beyond their noise (total variation)",
                ("Table", "Distance", "By noise alone", "To know"),
                rows,
                numbers=(1, 2),
            )
        )
    return "".join(parts)


def released_rule(found: RuleAudit, settings: AuditSettings) -> str:
    """One rule in the synthetic world."""
    return "".join(
        (
            _rule_words(found),
            figure_table("Outcomes by group in the synthetic rows", found.outcomes.figures()),
            model_table("Models trained and tested on synthetic rows", found.models, settings),
            _decisions(found.models),
            proxy_table("What inadmissible columns tell of the protected ones", found.proxies),
        )
    )


def _short(figure: Figure | None) -> str:
    if figure is None:
        return NONE
    ends = interval(figure)
    value = text(number(figure.value, figure.unit))
    return value + (f"<br>{text(ends)}" if ends != NONE else "")


def model_table(caption: str, models: Sequence[ModelAudit], settings: AuditSettings) -> str:
    """How well each model predicts, with what a guess gives."""
    rows = []
    for model in models:
        found = model.utility
        rows.append(
            [
                f"{text(model.outcome)}, {text(model.learner)}",
                text(model.trained_on),
                text(model.tested_on),
                _short(found.auc),
                f"{_short(found.accuracy)}<br>guess: {text(compared_number(found.accuracy))}",
                _short(found.calibration),
                _short(found.brier),
                text(found.auc.reason or NONE),
            ]
        )
    seen = "all other columns" if settings.use_protected else "all columns but the protected ones"
    return table(
        f"{caption}; predicted from {seen}",
        ("Model", "Trained on", "Tested on", "AUC", "Right", "Calibration", "Brier", "To know"),
        rows,
        numbers=(3, 4, 5, 6),
    )


def compared_number(figure: Figure) -> str:
    """The baseline alone."""
    return number(figure.baseline, figure.unit)


def _decisions(models: Sequence[ModelAudit]) -> str:
    return "".join(
        figure_table(
            f"Decisions of the {model.learner} model of {model.outcome}, trained on the "
            f"{model.trained_on}, about the {model.tested_on}",
            model.fairness.figures(),
        )
        for model in models
    )


def proxy_table(caption: str, proxies: Sequence[ProxySuggestion]) -> str:
    """Inadmissible columns, the strongest first."""
    rows = [
        [
            f"{text(proxy.column)}{' <strong>suggested as a proxy</strong>' * proxy.suggested}",
            _short(proxy.share),
            text(compared_number(proxy.share)),
            _short(proxy.ranking),
            text(proxy.why),
        ]
        for proxy in proxies[:LONGEST]
    ]
    header = ("Column", "Share told", "By chance alone", "Ranking (AUC)", "In words")
    return table(caption, header, rows, numbers=(1, 2, 3))


def _rule_words(found: RuleAudit) -> str:
    words = found.rule.words
    return f"<p>The rule: {text(words)}.</p>"


def settings_list(settings: AuditSettings) -> str:
    """Levels, draws and seeds, for whoever wants to compute it again."""
    lines = (
        f"Intervals: bootstrap over rows, {settings.draws} draws, level {settings.level:.0%}; "
        "models are not trained again, so an interval does not show what other training rows "
        "would change. Intervals of synthetic rows do not contain the privacy noise, which is the "
        "same in all of them.",
        f"Noise floors of information: {settings.permutations} shuffles of the protected columns "
        "among rows with equal admissible values.",
        f"Groups and strata of fewer than {settings.minimum} rows are left out of gaps.",
        f"Models: {', '.join(settings.learners)} (scikit-learn), at most "
        f"{settings.training_rows:,} rows. Where training and test rows come from one world, no "
        "row is tested by a model that saw it.",
        f"Seed {settings.seed}.",
    )
    return "<ul>" + "".join(f"<li>{text(line)}</li>" for line in lines) + "</ul>"
