package trail

import (
	"time"
)

// PodDetail is a virt-launcher pod as far as it matters for evictions.
type PodDetail struct {
	Pod       string    `json:"pod"`
	Phase     string    `json:"phase,omitempty"`
	Message   string    `json:"message,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
}

func (*PodDetail) isDetail() {}
