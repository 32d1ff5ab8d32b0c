#!/usr/bin/env python3
"""A Tidegate worker with nothing but Python's standard library: an attempt is a process, and ends with its lease."""
import json, multiprocessing, os, threading, time, urllib.request

URL = os.environ.get("TIDEGATE_SERVER", "http://127.0.0.1:7070") + "/api/v1/workers"
HEADERS = {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("TIDEGATE_TOKEN", "none")}
NAME = os.environ.get("WORKER_NAME", f"python-{os.getpid()}")
ACTIONS = {"math.square": lambda given: given["number"] ** 2, "math.root": lambda given: given["number"] ** 0.5}
running = {}

def ask(path, body):
    """When it was sent, from which leases are counted, and the answer; again until there is one."""
    while True:
        sent, request = time.monotonic(), urllib.request.Request(URL + path, json.dumps(body).encode(), HEADERS)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return sent, json.load(answer)
        except OSError as error:
            if getattr(error, "code", 500) < 500:  # Such as a name that another worker has taken.
                os._exit(print(error.read().decode(), flush=True) or 1)
            print("not heard:", error, flush=True)
            time.sleep(1)

def carry_out(pipe, action, given):
    try:
        pipe.send({"state": "succeeded", "output": ACTIONS[action](given)})
    except Exception as error:
        pipe.send({"state": "failed", "error": f"{type(error).__name__}: {error}"})

def attempt(key, mine, entry):
    while not mine.poll(0.2):
        if time.monotonic() > entry["until"]:
            entry["process"].kill()
    try:
        ended = mine.recv()
    except EOFError:  # It was killed.
        ended = {"state": "stopped"}
    told = ask(f"/{NAME}/finish", {"incarnation": me, "finished": [{"task": key[0], "epoch": key[1], **ended}]})
    del running[key]
    hand_over(*told)

def hand_over(sent, handed):
    for new in handed["attempts"]:
        key, (mine, theirs) = (new["task"], new["epoch"]), multiprocessing.Pipe(False)
        if key not in running:
            process = multiprocessing.Process(target=carry_out, args=(theirs, new["action"], new["input"]), daemon=True)
            running[key] = {"process": process, "until": sent + new["lease_left"], "lease": new["lease"]}
            process.start()
            theirs.close()
            threading.Thread(target=attempt, args=(key, mine, running[key]), daemon=True).start()
    for lease in handed["stop"]:
        if entry := running.get((lease["task"], lease["epoch"])):
            entry["process"].kill()

def keep():
    while not time.sleep(1):
        sent, kept = ask(f"/{NAME}/heartbeat", {"incarnation": me, "has": [dict(task=t, epoch=e) for t, e in [*running]]})
        for lease in kept["renewed"]:
            if entry := running.get((lease["task"], lease["epoch"])):
                entry["until"] = sent + entry["lease"]
        hand_over(sent, {"attempts": [], "stop": kept["stop"]})

me = ask("", {"name": NAME, "actions": [*ACTIONS], "slots": 4})[1]["incarnation"]
print(f"worker {NAME} works", flush=True)
threading.Thread(target=keep, daemon=True).start()
while True:
    hand_over(*ask(f"/{NAME}/poll?wait=20s&incarnation={me}", {}))
