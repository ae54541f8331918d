package trail

// KubeEventDetail is a Kubernetes Event as it came.
type KubeEventDetail struct {
	About     string `json:"about"` // kind of the involved object
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
	Type      string `json:"type,omitempty"`
	Component string `json:"component,omitempty"`
	Count     int64  `json:"count"`
}

func (*KubeEventDetail) isDetail() {}
