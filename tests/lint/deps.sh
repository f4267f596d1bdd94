#!/usr/bin/env bash
# Includes point downwards only: main -> net -> {vhost, port} -> virtq -> mem -> base, and no group
# of source files includes itself in a circle. Prints what is wrong, and the number of cycles.
set -euo pipefail
cd "$(dirname "$0")/../../src"

exec python3 - <<'EOF'
import collections, glob, re, sys

MAY_INCLUDE = {
    "base": {"base"},
    "mem": {"base", "mem"},
    "virtq": {"base", "mem", "virtq"},
    "vhost": {"base", "mem", "virtq", "vhost"},
    "port": {"base", "mem", "virtq", "port", "bpf"},
    "net": {"base", "mem", "virtq", "vhost", "port", "net"},
}

graph = collections.defaultdict(set)
wrong = []
for path in glob.glob("**/*.[ch]", recursive=True):
    folder = path.split("/")[0] if "/" in path else "main"
    module = path.rsplit(".", 1)[0]
    for line in open(path):
        match = re.match(r'#include "([^"]+)\.h"', line)
        if not match or match.group(1).startswith("vhost-user-xdp/"):
            continue
        target = match.group(1)
        target_folder = target.split("/")[0] if "/" in target else "main"
        if folder != "main" and target_folder not in MAY_INCLUDE[folder]:
            wrong.append(f"{path} includes {target}.h: not below {folder}")
        if target != module:
            graph[module].add(target)

def reaches_itself(start):
    seen, todo = set(), list(graph[start])
    while todo:
        node = todo.pop()
        if node == start:
            return True
        if node not in seen:
            seen.add(node)
            todo += graph[node]
    return False

cycles = [module for module in sorted(graph) if reaches_itself(module)]
for text in wrong + [f"{module} includes itself in a circle" for module in cycles]:
    print(text)
print(f"modules in include cycles: {len(cycles)}")
sys.exit(1 if wrong or cycles else 0)
EOF
