-- Waits for whoever projects. This takes no snapshot, so what is read afterwards is what it left.
lock table tidegate.position in exclusive mode
