"""``python -m fuzz TOPIC --cases N --seed S``: many cases, a summary, and how to repeat a failure.

Cases are independent, and numbered: ``--first K`` goes on where a run was stopped.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import os
import signal
import sys
import time
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from fuzz.topics import TOPICS
from fuzz.verdict import FuzzError

LONGEST = 120
"""Seconds of the processor that no case may take; of the clock, ten times as many."""
SLOW = 20.0


def one_case(topic, seed, number):
    """Run a case; return its kind, the fault or None, seconds, and its sentence."""
    rng = np.random.default_rng([seed, number, *topic.encode()])
    began = time.process_time()
    warnings.resetwarnings()
    signal.signal(signal.SIGALRM, _too_long)
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.alarm(10 * LONGEST)
    try:
        outcome = TOPICS[topic](rng)
        kind, fault, sentence = outcome.kind, None, outcome.sentence
    except Exception as error:
        place = (
            "".join(traceback.format_exception(error)[-3:])
            if not isinstance(error, FuzzError)
            else ""
        )
        kind, fault, sentence = "FAULT", f"{error}\n{place}{_origin(error)}", ""
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return kind, fault, time.process_time() - began, sentence


def _too_long(number, frame):
    raise FuzzError(
        f"it takes more than {LONGEST} s, in {frame.f_code.co_filename}:{frame.f_lineno}"
    )


def _origin(error):
    """Where the error came from that a FuzzError tells of."""
    cause = error.__cause__
    if cause is None:
        return ""
    frames = traceback.extract_tb(cause.__traceback__)[-4:]
    return " < ".join(f"{f.filename.rsplit('/src/', 1)[-1]}:{f.lineno}" for f in reversed(frames))


def _chunk(topic, seed, numbers):
    return [(number, *one_case(topic, seed, number)) for number in numbers]


def run_topic(topic, cases, seed, first, jobs):
    """Run the cases of a topic; return the number of faults."""
    began = time.perf_counter()
    kinds, sentences, slow, faults = collections.Counter(), collections.Counter(), [], 0
    numbers = range(first, first + cases)
    chunks = [numbers[i : i + 25] for i in range(0, cases, 25)]
    topics, seeds = [topic] * len(chunks), [seed] * len(chunks)
    with ProcessPoolExecutor(jobs, initializer=faulthandler.enable) as pool:
        for done, chunk in enumerate(pool.map(_chunk, topics, seeds, chunks)):
            for number, kind, fault, seconds, sentence in chunk:
                kinds[kind] += 1
                sentences[sentence[:40]] += 1
                if seconds > SLOW:
                    slow.append((seconds, number))
                if fault is not None:
                    faults += 1
                    print(f"\npython -m fuzz {topic} --seed {seed} --first {number} --cases 1")
                    print(fault, flush=True)
            if done % 10 == 9:
                total = sum(kinds.values())
                rate = total / (time.perf_counter() - began)
                rest = f"{faults} faults, the next is --first {first + total}"
                print(f"{topic}: {total} cases, {rate:.1f} per second, {rest}", flush=True)
    seconds = time.perf_counter() - began
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    print(f"{topic}: {cases} cases of seed {seed}, {cases / seconds:.1f} per second")
    print(f"  {told}; {len(sentences) - ('' in sentences)} different sentences")
    for took, number in sorted(slow, reverse=True)[:5]:
        print(f"  slow: case {number}, {took:.0f} s")
    return faults


def main():
    """Run the topics; return 1 if one of them has a fault."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("topics", nargs="+", metavar="topic[=cases]", help=", ".join(TOPICS))
    parser.add_argument("--cases", type=int, default=1000, help="of topics that name no number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    faults = 0
    for word in given.topics:
        topic, _, cases = word.partition("=")
        if topic not in TOPICS:
            parser.error(f"there is no topic {topic!r}; choose from {', '.join(TOPICS)}")
        faults += run_topic(topic, int(cases or given.cases), given.seed, given.first, given.n_jobs)
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
