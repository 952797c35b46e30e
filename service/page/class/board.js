// The class board, which the teacher shows on a projector.
