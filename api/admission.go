package api

import (
	"io"
	"net/http"
	"strconv"
)

// Admission is POST /admission: the eviction observer. It allows everything.
type Admission struct {
	// Review reads an AdmissionReview and gives the answer, and what is to be done once it was sent.
	Review func(raw []byte) (answer []byte, then func(), err error)
}

// reviewBody bounds an AdmissionReview, in bytes: objects of an API server are smaller.
const reviewBody = 3 << 20

// review answers before anything else happens.
func (a Admission) review(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, reviewBody))
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	answer, then, err := a.Review(raw)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer)
	_ = http.NewResponseController(w).Flush() // a writer that cannot sends it when we return
	then()
}
