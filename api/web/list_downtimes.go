package web

// showDown shows whether a VM is down, or runs again. One that was stopped or deleted may stay so for good.
func showDown(r listRow) cell {
	switch {
	case r.text("up_at") != "":
		return cell{Parts: []part{{Text: "up again"}}}
	case isPlanned(r):
		return cell{Parts: []part{{Text: "down"}}}
	}
	return cell{Class: "warn", Parts: []part{{Text: "down"}}}
}

// showDownSpan shows how long a VM was down; of one that its owner stopped, and did not start again, that is not
// counted.
func showDownSpan(r listRow) cell {
	if r.text("up_at") == "" && isPlanned(r) {
		return cell{Parts: []part{newPart("")}}
	}
	return showSpan("down_at", "up_at")(r)
}

// isPlanned reports whether the owner of the VM, or its guest, began a downtime.
func isPlanned(r listRow) bool { return r.text("planned") == "t" }

func showPlanned(r listRow) cell {
	if isPlanned(r) {
		return cell{Parts: []part{{Text: "yes", Title: "Its owner or the guest itself ended it."}}}
	}
	return cell{Parts: []part{{Text: "no", Title: "The platform ended it, or nothing seen says who."}}}
}

// showBackOn shows on which node a VM runs again.
func showBackOn(r listRow) cell { return cell{Parts: []part{newNodePart(r, "back_on")}} }
