"""LeggedGym-Ex's variants of ``LeggedRobot``, with histories, labels and states for a learner."""
